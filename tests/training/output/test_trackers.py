"""Events are logged to the tools that were named, with every number, and passed on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.errors import MissingExtra
from regard.training.output.metrics_log import TrainingEvent, event_numbers
from regard.training.output.tensorboard import tensorboard_progress
from regard.training.output.trackers import with_trackers

LOG = TrainingEvent("log", 10, 20, {"loss": 0.7, "skipped": 0}, epoch=0.5)
SCORE = TrainingEvent("score", 20, 20, {"dev_loss": 0.5, "best": True, "scores": {"accuracy": 0.9}}, epoch=1.0)


def fake_wandb(calls: list[Any]) -> SimpleNamespace:
    run = SimpleNamespace(log=lambda numbers, step: calls.append((step, numbers)))

    def init(**options: Any) -> SimpleNamespace:
        calls.append(options)
        return run

    return SimpleNamespace(init=init, finish=lambda: None)


def fake_mlflow(calls: list[Any]) -> SimpleNamespace:
    return SimpleNamespace(
        end_run=lambda: None,
        set_experiment=lambda name: calls.append(name),
        start_run=lambda run_name: calls.append(run_name),
        log_params=lambda values: calls.append(values),
        log_metrics=lambda numbers, step: calls.append((step, numbers)),
    )


def test_the_numbers_of_an_event() -> None:
    assert dict(event_numbers(LOG)) == {"train/loss": 0.7, "train/skipped": 0.0}
    assert dict(event_numbers(SCORE)) == {"dev/dev_loss": 0.5, "dev/accuracy": 0.9}
    assert dict(event_numbers(TrainingEvent("note", 1, 2, {"text": "a"}))) == {}


def test_wandb_gets_settings_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(calls))
    events: list[TrainingEvent] = []
    progress = with_trackers(["wandb"], tmp_path / "run", {"lr": 1e-4}, events.append)
    assert progress is not None
    for event in (LOG, SCORE):
        progress(event)
    assert calls[0] == {"project": "regard", "name": "run", "config": {"lr": 1e-4}}
    assert [step for step, _ in calls[1:]] == [10, 20]
    assert events == [LOG, SCORE]


def test_mlflow_gets_settings_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setitem(sys.modules, "mlflow", fake_mlflow(calls))
    progress = with_trackers(["mlflow"], tmp_path / "run", {"lr": 1e-4}, None)
    assert progress is not None
    progress(SCORE)
    assert calls == ["regard", "run", {"lr": "0.0001"}, (20, {"dev/dev_loss": 0.5, "dev/accuracy": 0.9})]


def test_several_tools_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(calls))
    progress = with_trackers(["tensorboard", "wandb"], tmp_path, {}, None)
    assert progress is not None
    progress(LOG)
    assert calls[-1][0] == 10
    assert list((tmp_path / "events").iterdir())


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_without_the_package_the_extra_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"regard\[{name}\]"):
        with_trackers([name], tmp_path, {}, None)


def test_nothing_is_logged_unless_asked_for(tmp_path: Path) -> None:
    assert with_trackers([], tmp_path, {}, None) is None


def test_events_hold_every_number_and_are_passed_on(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events: list[TrainingEvent] = []
    progress = tensorboard_progress(tmp_path, events.append)
    progress(TrainingEvent("log", 10, 20, {"loss": 0.7, "skipped": 0}, epoch=0.5))
    progress(
        TrainingEvent(
            "score", 20, 20, {"dev_loss": 0.5, "main": "accuracy", "best": True, "scores": {"accuracy": 0.9}}, epoch=1.0
        )
    )
    result = EventAccumulator(str(tmp_path / "events")).Reload()
    assert [event.step for event in result.Scalars("train/loss")] == [10]
    assert result.Scalars("dev/accuracy")[0].value == pytest.approx(0.9)
    assert [event.kind for event in events] == ["log", "score"]


def test_without_the_extra_it_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"regard\[track\]"):
        tensorboard_progress(tmp_path, None)
