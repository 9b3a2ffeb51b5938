"""Students that are fitted to their teacher before any training."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.compression.students.test_shapes import even_importance
from tests.predict.models import random_checkpoint

from regard.checkpoint.folder import Checkpoint
from regard.compression.students.least_squares import (
    LENGTH,
    can_fit,
    evenly_spaced,
    fit_student,
    fitting_batch,
    principal_directions,
    ridge,
)
from regard.compression.students.shapes import Shape, shrink
from regard.compression.teacher import Teacher
from regard.config import ModelConfig
from regard.data.records import ClassifyRecord
from regard.model.mean_layer import append_mean_layer
from regard.model.transformer import Transformer
from regard.ragged import Ragged


def random_batch(sequences: int = 200, length: int = 12, seed: int = 0) -> Ragged:
    generator = torch.Generator().manual_seed(seed)
    return Ragged.of([torch.randint(5, 60, (length,), generator=generator).tolist() for _ in range(sequences)])


def relative_error(student: Checkpoint, teacher: Checkpoint, batch: Ragged) -> float:
    """The part of the variance of the teacher's logits that the student's do not have."""
    with torch.inference_mode():
        ours, theirs = student.network(batch).logits, teacher.network(batch).logits
        assert ours is not None
        assert theirs is not None
        return float((ours - theirs).square().mean() / (theirs - theirs.mean(0)).square().mean())


def test_ridge_finds_a_linear_layer() -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(6, 3), torch.randn(500, 6)
    weight, bias = ridge(x, layer(x).detach(), 1e-6)
    assert torch.allclose(weight, layer.weight, atol=1e-4)
    assert torch.allclose(bias, layer.bias, atol=1e-4)


@pytest.mark.parametrize("heads", [{"token": 5}, {"sequence": 3}])
def test_a_student_of_the_whole_shape_computes_the_same(heads: dict[str, int]) -> None:
    checkpoint = random_checkpoint("tiny-bert", heads)
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    whole = Shape(config.layers, config.width, config.ffn_width)
    student = fit_student(checkpoint, whole, even_importance(config), random_batch())
    assert relative_error(student, checkpoint, random_batch(seed=1)) < 0.02


@pytest.mark.parametrize("heads", [{"token": 5}, {"sequence": 3}, {"span": 2}])
def test_a_fitted_student_is_nearer_than_one_that_is_cut_out(heads: dict[str, int]) -> None:
    checkpoint = random_checkpoint("tiny-bert", heads)
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    shape, importance = Shape(1, config.width // 2, config.ffn_width // 2), even_importance(config)
    fitted, cut = fit_student(checkpoint, shape, importance, random_batch()), shrink(checkpoint, shape, importance)
    assert fitted.config == cut.config
    test = random_batch(seed=1)
    assert relative_error(fitted, checkpoint, test) < 0.7 * relative_error(cut, checkpoint, test)


def test_the_layer_of_the_mean_still_averages() -> None:
    checkpoint = random_checkpoint("tiny-bert", {"sequence": 2})
    append_mean_layer(checkpoint.network)
    config = checkpoint.network.config
    assert isinstance(config, ModelConfig)
    checkpoint = dataclasses.replace(checkpoint, config=config)
    student = fit_student(checkpoint, Shape(2, config.width // 2, 16), even_importance(config), random_batch())
    assert isinstance(student.network, Transformer)
    with torch.inference_mode():
        hidden = student.network.read(random_batch(1))
    assert torch.allclose(hidden, hidden[:1].expand_as(hidden), atol=0.2)


def test_directions_are_orthogonal() -> None:
    network = random_checkpoint("tiny-bert").network
    assert isinstance(network, Transformer)
    directions = principal_directions(network.reader, [1], random_batch(), 8)
    assert torch.allclose(directions.T @ directions, torch.eye(8), atol=1e-4)


def test_records_from_all_over_the_data() -> None:
    records = [ClassifyRecord(str(number)) for number in range(10)]
    assert [record.text for record in evenly_spaced(records, 5)] == ["0", "2", "4", "6", "8"]  # type: ignore[attr-defined]
    assert evenly_spaced(records, 50) == records


def test_long_texts_are_cut(teacher: Teacher) -> None:
    records = [ClassifyRecord("great soup " * count, "good") for count in (1, 10, 30)]
    batch = fitting_batch(teacher.task, records, teacher.model.preprocessing())
    assert len(batch) == 3
    assert batch.max_length <= LENGTH


def test_which_networks_are_fitted() -> None:
    assert can_fit(random_checkpoint("tiny-bert").config)
    assert can_fit(random_checkpoint("tiny-roberta").config)
    assert not can_fit(random_checkpoint("tiny-modernbert").config)
    assert not can_fit(random_checkpoint("tiny-elmo").config)
