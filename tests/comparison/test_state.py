"""The folder of a comparison, its results as JSON, and its jobs."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from regard.comparison import plan as plan_module
from regard.comparison.groups import RowGroups
from regard.comparison.plan import ComparisonPlan
from regard.comparison.result import Comparison, LearningCurve, ModelResult, PairResult, RuleOfThumb
from regard.comparison.state import RESULTS, count_test_use, open_folder
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.specs import ModelSpec
from regard.errors import FolderError, RegardError
from regard.metrics.confidence import Score

IDENTITY = {"data": "1", "test": "2", "settings": {"steps": 3}}


def test_a_folder_is_opened_again_for_the_same_rows_only(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    open_folder(folder, IDENTITY, overwrite=False)
    open_folder(folder, IDENTITY, overwrite=False)
    with pytest.raises(FolderError, match=r"differs in: test rows, steps \(3, now not given\)\."):
        open_folder(folder, {"data": "1", "test": "3", "settings": {}}, overwrite=False)
    (folder / "models").mkdir()
    open_folder(folder, {"data": "9"}, overwrite=True)
    assert not (folder / "models").exists()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(FolderError, match="holds no comparison"):
        open_folder(tmp_path, IDENTITY, overwrite=True)
    with pytest.raises(FolderError, match="is a file"):
        open_folder(tmp_path / "mine", IDENTITY, overwrite=False)


def test_uses_of_the_test_rows_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    open_folder(folder, IDENTITY, overwrite=False)
    assert count_test_use(folder, new_models=True) == 1
    (folder / RESULTS).write_text("{}", encoding="utf-8")
    assert count_test_use(folder, new_models=False) == 1
    assert count_test_use(folder, new_models=True) == 2
    assert not (folder / RESULTS).exists()
    assert count_test_use(folder, new_models=True) == 2


SCORE = Score(0.5, 0.4, 0.6)


def test_a_comparison_is_what_its_json_says() -> None:
    model = ModelResult("a", "loaded", {"accuracy": SCORE}, seeds=(0.5,))
    comparison = Comparison(
        task="classify",
        metric="accuracy",
        rows=50,
        train_rows=100,
        dev_rows=10,
        models=(model, ModelResult("b", "baseline", error="failed")),
        pairs=(PairResult("a", "b", "accuracy", 0.1, 0.0, 0.2, 0.1, 0.1, 0.1, None, 0.2, 900, None, "cannot tell"),),
        verdict="a",
        best="a",
        cheapest="a",
        rule_of_thumb=RuleOfThumb(100, 5.0, 20.0, "n-grams", "."),
        curves=(LearningCurve("a", (10, 20), (SCORE, SCORE), {40: SCORE}, SCORE, "."),),
        notes=("one",),
    )
    assert Comparison.from_json(json.loads(json.dumps(comparison.json()))) == comparison
    assert comparison.model("a") == model
    assert {"task", "rows", "models", "pairs", "verdict"} <= comparison.json().keys()
    contract = {"name", "scores", "parameters", "train_seconds", "latency_ms", "texts_per_second", "bytes", "folder"}
    assert contract <= comparison.json()["models"][0].keys()
    assert {"a", "b", "metric", "difference", "low", "high", "p", "verdict"} <= comparison.json()["pairs"][0].keys()
    shown = comparison._repr_html_()
    assert "0.5 (0.4 to 0.6), 0 ms" in shown
    assert "failed" in shown


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
