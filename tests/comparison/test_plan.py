"""The jobs of a comparison."""

from __future__ import annotations

from pathlib import Path

from regard.comparison.plan import ComparisonPlan
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.specs import ModelSpec


def test_whole_trainings_come_first_and_loaded_models_have_one_seed(two_classes: Path, tmp_path: Path) -> None:
    specs = (ModelSpec("a", "from scratch", preset="a"), ModelSpec("b", "loaded", start="b"))
    plan = ComparisonPlan(load_compared_data(two_classes), specs, tmp_path, seeds=2, curve=True)
    jobs = [(job.spec.name, job.name) for job in plan.jobs()]
    assert jobs[:3] == [("a", "seed-0"), ("b", "seed-0"), ("a", "seed-1")]
    assert jobs[3:] == [("a", f"seed-0-part-{part}") for part in (16, 8, 4, 2)]
