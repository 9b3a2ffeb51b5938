"""The training loop: memory that runs out, and the best of equal scores."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.training.helpers import Reviews, Write, train

from regard.errors import RegardError
from regard.metrics.confidence import Score
from regard.training.engine.loop import _Loop
from regard.training.engine.stepper import Stepper
from regard.training.output.metrics_log import TrainingEvent


def test_of_equal_scores_the_lower_loss_is_the_best(tmp_path: Path, write_rows: Write, reviews: Reviews) -> None:
    rows = [(text, "good" if number % 8 else "bad") for number, (text, _) in enumerate(reviews(48))]
    events: list[TrainingEvent] = []
    result = train(
        write_rows(tmp_path / "uneven.csv", rows), tmp_path / "run", epochs=3, lr=1e-4, progress=events.append
    )
    scores = [event for event in events if event.kind == "score"]
    assert len({event.values["scores"]["accuracy"] for event in scores}) == 1  # all rows get the common label
    losses = [event.values["dev_loss"] for event in scores]
    assert losses == sorted(losses, reverse=True)
    assert [event.values["best"] for event in scores] == [True, True, True]
    assert json.loads((tmp_path / "run/run.json").read_text())["done"]["best_step"] == result.steps


@pytest.mark.parametrize(("higher", "last", "kept"), [(True, 0.70, True), (True, 0.5, False), (False, 1.5, True)])
def test_the_last_weights_are_kept_unless_significantly_worse(*, higher: bool, last: float, kept: bool) -> None:
    """An earlier score of 0.8 or 1.4, and an interval of plus or minus 0.15 around the last one."""
    job = SimpleNamespace(prefer_last=True, steps=10)
    loop = SimpleNamespace(job=job, at=SimpleNamespace(best=0.8 if higher else 1.4, best_loss=0.1, step=10))
    result = SimpleNamespace(
        scores={"main": Score(last, last - 0.15, last + 0.15)}, main="main", value=last, loss=1.0, higher=higher
    )
    improves: Any = _Loop._improves
    keeps_last: Any = _Loop._keeps_last
    assert not improves(loop, result)
    assert keeps_last(loop, result) is kept
    loop.at.step = 9  # before the end, only a better score counts
    assert not keeps_last(loop, result)


def test_too_little_memory_is_met_with_smaller_parts(
    tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[TrainingEvent] = []
    part = Stepper.part

    def small(self: Stepper, inputs: Any) -> None:
        if inputs.tokens.ids.numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory")
        part(self, inputs)

    monkeypatch.setattr(Stepper, "part", small)
    result = train(reviews_csv, tmp_path / "run", progress=events.append)
    assert any("out of memory" in event.values.get("text", "") for event in events)
    assert result.steps == 9


def test_no_memory_at_all_is_reported(tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Stepper, inputs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stepper, "part", none)
    with pytest.raises(RegardError, match=r"not enough memory for 1 token at once\. Use a smaller batch_tokens"):
        train(reviews_csv, tmp_path / "run")
