"""The training loop: memory that runs out, and the best of equal scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.helpers import Reviews, Write, train

from regard.errors import RegardError
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
    assert result.steps == 10


def test_no_memory_at_all_is_reported(tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Stepper, inputs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stepper, "part", none)
    with pytest.raises(RegardError, match=r"not enough memory for 1 token at once\. Use a smaller batch_tokens"):
        train(reviews_csv, tmp_path / "run")
