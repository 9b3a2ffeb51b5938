"""The loss of a distillation: soft targets, hidden states, value relations."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint
from torch.nn import functional as F

import regard
from regard.data.batching.examples import TEACHER, Inputs
from regard.model.transformer import Output, Transformer
from regard.ragged import Ragged
from regard.tasks.classify import Classify
from regard.training.engine.distillation import (
    Distillation,
    LayerMatcher,
    distillation_loss,
    soft_divergence,
)

BATCH = Ragged.of([[3, 5, 9, 4], [7, 2]])


def nothing(*_: object) -> None:
    raise AssertionError


def settings(**values: object) -> Distillation:
    return Distillation(nothing, "t", **values)  # type: ignore[arg-type]


def test_divergence_is_that_of_the_definition() -> None:
    torch.manual_seed(0)
    student, teacher = torch.randn(6, 4).log_softmax(-1), torch.randn(6, 4).log_softmax(-1)
    temperature = 3.0
    p, q = (teacher / temperature).softmax(-1), (student / temperature).log_softmax(-1)
    expected = (p * (p.log() - q)).sum(-1) * temperature**2
    assert torch.allclose(soft_divergence(student, teacher, temperature), expected, atol=1e-5)
    assert torch.allclose(soft_divergence(student, student, 2.0), torch.zeros(6), atol=1e-6)


def inputs(teacher: torch.Tensor | None) -> Inputs:
    values = {"label": torch.tensor([0, 1]), "weight": torch.ones(2)}
    if teacher is not None:
        values[TEACHER] = teacher
    return Inputs(BATCH, by_sequence=values, rows=2)


def test_labels_and_soft_targets_share_the_weight() -> None:
    task = Classify(names=("a", "b"))
    logits = torch.tensor([[1.0, 0.0], [0.3, 0.9]])
    teacher = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).log_softmax(-1)
    output = Output(torch.zeros(6, 4), logits)
    loss = distillation_loss(task, output, inputs(teacher), settings(weight=0.75, temperature=2.0))
    hard = F.cross_entropy(logits, torch.tensor([0, 1]), reduction="sum")
    soft = soft_divergence(logits.log_softmax(-1), teacher, 2.0).sum()
    assert torch.allclose(loss.sum, 0.25 * hard + 0.75 * soft)
    assert loss.count == 2
    assert torch.allclose(distillation_loss(task, output, inputs(None), settings()).sum, hard)


def test_rows_without_soft_targets_do_not_count() -> None:
    task = Classify(names=("a", "b"))
    teacher = torch.tensor([[0.1, 0.9], [math.nan, math.nan]])
    batch = inputs(teacher)
    batch = dataclasses.replace(batch, by_sequence={**batch.by_sequence, "weight": torch.tensor([1.0, 0.0])})
    loss = distillation_loss(task, Output(torch.zeros(6, 4), torch.randn(2, 2)), batch, settings())
    assert torch.isfinite(loss.sum)


def test_numbers_are_compared_as_they_are() -> None:
    task = Classify(kind="number")
    batch = Inputs(
        BATCH,
        by_sequence={"label": torch.tensor([1.0, 2.0]), "weight": torch.ones(2), TEACHER: torch.tensor([[1.5], [2.5]])},
        rows=2,
    )
    loss = distillation_loss(task, Output(torch.zeros(6, 4), torch.tensor([[1.0], [2.0]])), batch, settings(weight=1.0))
    assert loss.sum == pytest.approx(0.25 * 2)


def test_equal_layers_have_no_loss() -> None:
    student, teacher = (random_checkpoint("tiny-bert").network for _ in range(2))
    assert isinstance(student, Transformer)
    assert isinstance(teacher, Transformer)
    matcher = LayerMatcher(student, settings(network=teacher, layers={0: 0, 1: 1}))
    student.read(BATCH)
    assert float(matcher.loss(BATCH).detach()) == pytest.approx(0, abs=1e-5)
    weight = student.get_parameter("encoder.layers.0.attention.qkv.weight")
    with torch.no_grad():
        weight.add_(0.3)
    student.read(BATCH)
    loss = matcher.loss(BATCH)
    assert loss > 1e-3
    loss.backward()
    assert weight.grad is not None
    assert all(one.grad is None for one in teacher.parameters())


def test_a_training_with_a_teacher_follows_it(tmp_path: Path) -> None:
    """The teacher contradicts the labels; with all the weight on it, the student learns the opposite of them."""
    data = tmp_path / "rows.csv"
    lines = [f"{word} {other},{label}" for word, label in (("good", "yes"), ("bad", "no")) for other in "abcdefghijkl"]
    data.write_text("text,label\n" + "\n".join(lines * 3) + "\n")

    def opposite(task: object, examples: object, records: object) -> object:
        labels = np.asarray(examples.by_sequence["label"])  # type: ignore[attr-defined]
        soft = np.log(np.eye(2)[1 - labels] * 0.98 + 0.01).astype(np.float32)
        return dataclasses.replace(examples, by_sequence={**examples.by_sequence, TEACHER: soft})  # type: ignore[attr-defined,type-var]

    distillation = Distillation(opposite, "opposite", weight=1.0)  # type: ignore[arg-type]
    options = {"preset": "tiny-bert", "steps": 40, "lr": 1e-2, "device": "cpu", "dev_fraction": 0}
    regard.train(data, out=tmp_path / "student", distillation=distillation, **options)  # type: ignore[arg-type]
    answers = regard.load(tmp_path / "student", device="cpu").predict(["good a", "bad b"])
    assert [answer.json()["label"] for answer in answers] == ["no", "yes"]
