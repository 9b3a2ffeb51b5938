"""Training within a time budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sentence_encoder import write_sentence_encoder

from regard.comparison.trainings import time_budget
from regard.comparison.trainings.compared_data import load_compared_data
from regard.comparison.trainings.time_budget import (
    BudgetGuard,
    OverBudget,
    ShortenedTraining,
    SlowStart,
    parse_duration,
    read_shortened,
    report_shortened,
    shortened_by,
    train_within,
)
from regard.training.head_init.similarity import LEARNING
from regard.training.output.metrics_log import TrainingEvent


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), (30.0, 30), (None, None)]
)
def test_durations(text: str | float | None, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def test_a_training_that_would_take_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None)
    guard(TrainingEvent("begin", 0, 1000))
    guard(TrainingEvent("log", 10, 1000))
    with pytest.raises(OverBudget) as over:
        guard(TrainingEvent("log", 20, 1000))
    assert over.value.steps == 54  # 44 s for one step per second, after 10


def test_a_second_training_on_all_rows_counts_too_and_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 11.0, 21.0, 31.0, 60.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None)
    guard(TrainingEvent("begin", 0, 30, {"refit": True}))
    guard(TrainingEvent("log", 10, 30))
    guard(TrainingEvent("log", 20, 30))  # 1 s, and 20 s twice
    guard(TrainingEvent("log", 30, 30))
    guard(TrainingEvent("note", 0, 30, {"text": "training again", "refit": True}))
    guard(TrainingEvent("log", 10, 33))
    guard(TrainingEvent("log", 20, 33))


def test_a_training_that_takes_too_long_twice_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None)
    guard(TrainingEvent("begin", 0, 50, {"trainings": 2, "repeats": 1}))
    guard(TrainingEvent("log", 10, 50))
    with pytest.raises(OverBudget) as over:
        guard(TrainingEvent("log", 20, 50))
    assert (over.value.steps, over.value.expected) == (32, 81.0)


@pytest.mark.parametrize(("repeats", "fitting", "planned"), [(None, 54, 150), (3, 24, 50)])
def test_a_shorter_training_is_repeated_only_on_request(
    monkeypatch: pytest.MonkeyPatch, repeats: int | None, fitting: int, planned: int
) -> None:
    """By default, a training with fewer steps uses all of the time for one training."""
    clock = iter([0.0, 1.0, 11.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None, {"repeats": repeats})
    guard(TrainingEvent("begin", 0, 50, {"trainings": 3, "repeats": 3}))
    guard(TrainingEvent("log", 10, 50))
    with pytest.raises(OverBudget) as over:
        guard(TrainingEvent("log", 20, 50))
    assert (over.value.steps, over.value.planned, over.value.expected) == (fitting, planned, 121.0)


def test_a_shortened_training_is_resumed_with_as_many_steps(
    two_classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load_compared_data(two_classes).labeled

    class Short(BudgetGuard):
        def __call__(self, event: TrainingEvent) -> None:
            if event.kind == "log":
                raise OverBudget(3, 3, 9.0)

    monkeypatch.setattr(time_budget, "BudgetGuard", Short)
    options = {"preset": "tiny-bert", "start": None, "training": None, "settings": {"epochs": 50, "log_every": 1}}
    train_within(1.0, tmp_path / "model", data, **options)  # type: ignore[arg-type]
    assert json.loads((tmp_path / "model.steps.json").read_text(encoding="utf-8"))["steps"] == 3
    run = json.loads((tmp_path / "model" / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["steps"] == 3
    train_within(1.0, tmp_path / "model", data, **options)  # type: ignore[arg-type]


def test_similarity_may_take_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 12.0, 13.0, 15.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(50.0, None)
    learning = {"what": LEARNING}
    guard(TrainingEvent("fit", 500, 500, {"what": "computing vectors"}))
    guard(TrainingEvent("fit", 10, 30, learning))
    guard(TrainingEvent("fit", 20, 30, learning))  # 22 s in all
    guard(TrainingEvent("log", 10, 100))
    guard(TrainingEvent("log", 20, 100))  # 31 s in all
    clock = iter([0.0, 2.0, 12.0])
    slow = BudgetGuard(40.0, None)
    slow(TrainingEvent("fit", 10, 30, learning))
    with pytest.raises(SlowStart):
        slow(TrainingEvent("fit", 20, 30, learning))


def test_a_training_without_the_time_to_learn_similarity_begins_again_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"first": f"cold water {n}", "second": f"{'warm' if n % 2 else 'cold'} {n}", "label": "ab"[n % 2]}
        for n in range(40)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    data = load_compared_data(path).labeled
    texts = [f"{row['first']} {row['second']}" for row in rows]
    encoder = write_sentence_encoder(tmp_path / "encoder", texts)
    monkeypatch.setattr(time_budget, "START", 0.0)
    events: list[TrainingEvent] = []
    options: dict[str, Any] = {"preset": None, "start": str(encoder), "settings": {"log_every": 1}}
    options["training"] = events.append
    train_within(600.0, tmp_path / "model", data, **options)
    run = json.loads((tmp_path / "model" / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["head_init"] == "random"
    notes = [event.values["text"] for event in events if event.kind == "note"]
    left_out = "learning similarity would take more than half of the 600 s for this training, so it is left out"
    assert notes == [
        f"{left_out}; the training begins again",
        "scores of 3 validation rows say little; --folds 5 (regard.cross_validate) scores every row",
    ]
    begins = [event.values["lines"] for event in events if event.kind == "begin"]
    assert begins
    assert not any("resume" in line for lines in begins for line in lines)
    shortened = read_shortened(tmp_path / "model")
    assert shortened is not None
    assert (shortened.steps, shortened.without) == (None, LEARNING)
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    train_within(600.0, tmp_path / "model", data, **options)  # it had ended
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_contrastive_training_may_take_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 12.0])
    monkeypatch.setattr("regard.comparison.trainings.time_budget.time.monotonic", lambda: next(clock))
    guard = BudgetGuard(40.0, None)
    guard(TrainingEvent("fit", 10, 30, {"what": "contrastive training"}))
    with pytest.raises(SlowStart) as slow:
        guard(TrainingEvent("fit", 20, 30, {"what": "contrastive training"}))
    shortened = ShortenedTraining(None, None, 40.0, without=slow.value.what)
    assert shortened.applied({"lr": 1e-4}) == {"lr": 1e-4, "head_init": "probe"}


def test_too_few_steps_to_learn_from_are_not_trained() -> None:
    over = OverBudget(2, 144, 210.0)
    assert over.steps == 20
    events: list[TrainingEvent] = []
    report_shortened(events.append, shortened_by(over, 40.0))
    assert events[0].values["text"] == (
        "only 2 of 144 steps fit into the 40 s for this training, too few to learn from, so 20 are trained, which "
        "takes longer (all take about 3.5 min); the training begins again"
    )


def test_files_of_older_versions_are_read(tmp_path: Path) -> None:
    (tmp_path / "model.steps.json").write_text('{"steps": 3, "planned": 9, "seconds": 5.0, "similarity": false}')
    shortened = read_shortened(tmp_path / "model")
    assert shortened is not None
    assert (shortened.steps, shortened.without) == (3, LEARNING)
