"""Students cut out of a teacher."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.compression.students.importance import Importance
from regard.compression.students.shapes import Shape, can_shrink, head_sizes, kept_layers, shrink
from regard.config import ModelConfig
from regard.model.mean_layer import append_mean_layer
from regard.model.transformer import Transformer
from regard.ragged import Ragged

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
