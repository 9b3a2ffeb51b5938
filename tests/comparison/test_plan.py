"""The jobs of a comparison."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from regard.comparison import plan as plan_module
from regard.comparison.groups import RowGroups
from regard.comparison.plan import ComparisonPlan
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.specs import ModelSpec
from regard.errors import RegardError


def test_whole_trainings_come_first_and_loaded_models_have_one_seed(two_classes: Path, tmp_path: Path) -> None:
    specs = (ModelSpec("a", "from scratch", preset="a"), ModelSpec("b", "loaded", start="b"))
    plan = ComparisonPlan(load_compared_data(two_classes), specs, tmp_path, seeds=2, curve=True)
    jobs = [(job.spec.name, job.name) for job in plan.jobs()]
    assert jobs[:3] == [("a", "seed-0"), ("b", "seed-0"), ("a", "seed-1")]
    assert jobs[3:] == [("a", f"seed-0-part-{part}") for part in (16, 8, 4, 2)]


def test_a_signal_stops_the_comparison(two_classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        error = RegardError("stopped at step 3")
        error.signal = signal.SIGINT  # type: ignore[attr-defined]  # as a training sets it
        raise error

    monkeypatch.setattr(plan_module, "run_job", stopped)
    specs = (ModelSpec("a", "from scratch", preset="a"), ModelSpec("b", "from scratch", preset="b"))
    plan = ComparisonPlan(load_compared_data(two_classes), specs, tmp_path)
    with pytest.raises(RegardError, match="stopped at step 3"):
        plan._run_jobs(plan.jobs(), plan.jobs())


def test_settings_that_not_every_model_takes_are_noted(two_classes: Path, tmp_path: Path) -> None:
    specs = (ModelSpec("ngram", "baseline", preset="ngram"), ModelSpec("a", "from scratch", preset="a"))
    data = load_compared_data(two_classes)
    groups = RowGroups()
    plan = ComparisonPlan(data, specs, tmp_path, seeds=3, settings={"epochs": 2, "device": "cpu"})
    assert plan._notes("f1", groups, 1) == ("epochs: not for ngram, fitted at once without training steps",)
    assert ComparisonPlan(data, specs, tmp_path, seeds=3, settings={"device": "cpu"})._notes("f1", groups, 1) == ()
    assert "always answering" in ComparisonPlan(data, specs, tmp_path, seeds=3)._notes("accuracy", groups, 1)[0]
    once = ComparisonPlan(data, specs, tmp_path)
    assert once._trained_once() == ["a"]  # n-grams are the same with any seed
    assert "is assumed in the verdicts" in once._notes("f1", groups, 1)[0]
