import sys

import pytest

from regard.errors import MissingExtra
from regard.training.output.metrics_log import TrainingEvent
from regard.training.output.tensorboard import tensorboard_progress


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
