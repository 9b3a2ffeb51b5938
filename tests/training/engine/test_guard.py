"""Steps that would spoil the weights are skipped, counted and said; several in a row stop the training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tasks.classify import Classify
from regard.tasks.task import Loss
from regard.training.engine.guard import MIN_STEPS, LossGuard
from regard.training.output.metrics_log import TrainingEvent, read_metrics
from regard.training.result import TrainResult

Train = Callable[..., TrainResult]


def judged(guard: LossGuard, loss: float, norm: float = 1.0) -> bool:
    return bool(guard.should_skip(torch.tensor(loss), torch.tensor(norm)))


def test_what_is_no_number_is_skipped() -> None:
    guard = LossGuard(torch.device("cpu"))
    assert not judged(guard, 1.0)
    assert judged(guard, float("nan"))
    assert judged(guard, 1.0, float("inf"))
    assert guard.counts() == (2, 2)
    assert not judged(guard, 1.0)
    assert guard.counts() == (2, 0)


def test_an_outlier_loss_is_skipped_after_enough_steps() -> None:
    guard, generator = LossGuard(torch.device("cpu")), torch.Generator().manual_seed(0)
    assert not judged(guard, 2.0)
    for _ in range(MIN_STEPS):
        assert not judged(guard, 1.0 + 0.1 * float(torch.randn((), generator=generator)))
    assert not judged(guard, 1.9), "far from the usual, but no worse than the start"
    assert judged(guard, 50.0)
    assert not judged(guard, 1.0)


def test_a_hard_start_is_no_spike() -> None:
    guard = LossGuard(torch.device("cpu"))
    assert not any(judged(guard, loss) for loss in (1.0, 30.0, 2.0, 100.0))


def spoiled(monkeypatch: pytest.MonkeyPatch, steps: set[int]) -> None:
    """The loss of those steps, counted from 0, is not a number."""
    loss, recorded = Classify.loss, iter(range(10**6))

    def changed(self: Classify, output: object, inputs: object) -> Loss:
        result = loss(self, output, inputs)  # type: ignore[arg-type]
        factor: Tensor | float = float("nan") if next(recorded) in steps else 1.0
        return Loss(result.sum * factor, result.count)

    monkeypatch.setattr(Classify, "loss", changed)


def test_a_skipped_step_is_counted_and_reported(small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[TrainingEvent] = []
    spoiled(monkeypatch, {2})
    done = small(tmp_path / "run", steps=6, dev_fraction=0.0, log_every=2, progress=events.append)
    assert done.skipped == 1
    notes = [event.values["text"] for event in events if event.kind == "note"]
    assert len(notes) == 1
    assert "1 step was skipped" in notes[0]
    logs = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "log"]
    assert [line["skipped"] for line in logs] == [0, 1, 1]
    assert all(line["loss"] < 100 for line in logs)


def test_what_is_no_number_is_null(small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(monkeypatch, {2})
    small(tmp_path / "run", steps=3, dev_fraction=0.0, log_every=1, micro_batch_tokens=128)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    logs = [line for line in (json.loads(line, parse_constant=refuse) for line in lines) if line["kind"] == "log"]
    assert [line["skipped"] for line in logs] == [1, 1, 1]
    assert (logs[0]["loss"], logs[0]["norm"]) == (None, None)


def test_several_in_a_row_stop_it_with_good_weights_kept(
    small: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file

    with monkeypatch.context() as patch:
        spoiled(patch, set(range(3, 100)))
        with pytest.raises(RegardError, match=r"last 3 steps in a row .*lower lr .*--resume"):
            small(tmp_path / "run", steps=12, dev_fraction=0.0, log_every=1, max_bad_steps=3)
    state = tmp_path / "run/state"
    assert json.loads((state / "state.json").read_text())["position"]["step"] == 6
    assert all(tensor.isfinite().all() for tensor in load_file(state / "weights.safetensors").values())
    done = small(tmp_path / "run", steps=12, dev_fraction=0.0, log_every=1, max_bad_steps=3, resume=True)
    assert (done.steps, done.skipped) == (12, 3)
