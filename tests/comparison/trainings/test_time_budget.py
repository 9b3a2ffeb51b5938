"""Training within a time budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.comparison.trainings import time_budget
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.time_budget import BudgetGuard, OverBudget, parse_duration, train_within
from regard.errors import InputError
from regard.training.output.metrics_log import TrainingEvent


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), (30.0, 30), (None, None)]
)
def test_durations(text: str | float | None, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3m", "0", "3d"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(InputError, match="expected a duration"):
        parse_duration(text)


def test_a_training_that_would_take_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None)
    guard(TrainingEvent("begin", 0, 1000))
    guard(TrainingEvent("log", 10, 1000))
    with pytest.raises(OverBudget) as over:
        guard(TrainingEvent("log", 20, 1000))
    assert over.value.steps == 54  # 44 s for one step per second, after 10


def test_a_shortened_training_is_resumed_with_as_many_steps(
    two_classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_compared_data(two_classes).labeled

    class Short(BudgetGuard):
        def __call__(self, event: TrainingEvent) -> None:
            if event.kind == "log":
                raise OverBudget(3, 400)

    monkeypatch.setattr(time_budget, "BudgetGuard", Short)
    options = {"preset": "tiny-bert", "start": None, "training": None, "settings": {"epochs": 50, "log_every": 1}}
    train_within(1.0, tmp_path / "model", data, **options)  # type: ignore[arg-type]
    assert json.loads((tmp_path / "model.steps.json").read_text(encoding="utf-8"))["steps"] == 3
    run = json.loads((tmp_path / "model" / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["steps"] == 3
    train_within(1.0, tmp_path / "model", data, **options)  # type: ignore[arg-type]
