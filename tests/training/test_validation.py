"""Validation scores when memory runs out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.helpers import train

import regard
from regard import samples
from regard.tasks.classify import Classify
from regard.tasks.language.masked import Masked
from regard.tasks.task import Loss
from regard.training.output.metrics_log import TrainingEvent


def test_too_little_memory_for_a_score_is_met_with_smaller_batches(
    tmp_path: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it runs out: in the network, or in the loss of what it said. The training itself is not touched."""
    train(reviews_csv, tmp_path / "whole")
    loss, events = Classify.loss, list[TrainingEvent]()

    def small(self: Classify, output: Any, inputs: Any) -> Loss:
        if inputs.rows > 3 and torch.is_inference_mode_enabled():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss(self, output, inputs)

    monkeypatch.setattr(Classify, "loss", small)
    train(reviews_csv, tmp_path / "run", progress=events.append)
    assert not any("out of memory" in event.values.get("text", "") for event in events)
    scores = [json.loads((tmp_path / name / "run.json").read_text())["scores"] for name in ("whole", "run")]
    assert scores[0] == scores[1]


def test_too_little_memory_for_validation_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, text = Masked.loss, samples.path("corpus")

    def small(self: Masked, output: Any, inputs: Any) -> Loss:
        if inputs.rows > 3 and torch.is_inference_mode_enabled():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss(self, output, inputs)

    monkeypatch.setattr(Masked, "loss", small)
    result = regard.pretrain([text], out=tmp_path / "run", preset="tiny-bert", steps=1, window=64, device="cpu")
    assert result.scores["masked_accuracy"].value >= 0
