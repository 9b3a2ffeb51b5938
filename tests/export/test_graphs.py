"""The module that becomes an ONNX file computes for every real token what the flat network computes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.config import ModelConfig
from regard.export.graphs import encoder_graph
from regard.export.padded import PaddedAttention, PaddedBatch, padded_copy, run_stack
from regard.model.network import build_network
from regard.model.transformer import Transformer
from regard.ragged import Ragged

# The padded network computes for every real token what the flat network computes.


SEQUENCES = [[3, 5, 9, 11, 4], [7, 2], [8, 6, 1]]
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]])
IDS = torch.tensor([[3, 5, 9, 11, 4], [7, 2, 0, 0, 0], [8, 6, 1, 0, 0]])
ENCODERS = ("tiny-bert", "tiny-roberta", "tiny-distilbert", "tiny-electra", "tiny-albert", "tiny-modernbert")


def transformer(name: str) -> Transformer:
    network = random_checkpoint(name).network
    assert isinstance(network, Transformer)
    return network


@pytest.mark.parametrize("name", ENCODERS)
@torch.inference_mode()
def test_every_family_reads_padded_batches(name: str) -> None:
    network = transformer(name)
    hidden = run_stack(padded_copy(network).reader, PaddedBatch(IDS, MASK))
    assert torch.allclose(hidden[MASK.flatten() == 1], network.read(Ragged.of(SEQUENCES)), atol=1e-4)
    assert not any(isinstance(module, PaddedAttention) for module in network.modules())


@pytest.mark.parametrize("settings", [{"kind": "alibi"}, {"kind": "rotary"}])
@torch.inference_mode()
def test_other_positions(settings: dict[str, Any]) -> None:
    config = random_checkpoint("tiny-bert").config
    assert isinstance(config, ModelConfig)
    positions = dataclasses.replace(config.positions, **settings)
    attention = dataclasses.replace(config.attention, score="additive", select="hard")
    torch.manual_seed(0)
    network = build_network(dataclasses.replace(config, positions=positions, attention=attention)).eval()
    assert isinstance(network, Transformer)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    hidden = run_stack(padded_copy(network).reader, PaddedBatch(IDS, MASK))
    assert torch.allclose(hidden[MASK.flatten() == 1], network.read(Ragged.of(SEQUENCES)), atol=1e-4)


@torch.inference_mode()
def test_a_padded_batch_pools_real_tokens_only() -> None:
    batch, flat = PaddedBatch(IDS, MASK), Ragged.of(SEQUENCES)
    values = torch.randn(15, 4, generator=torch.Generator().manual_seed(0))
    real = values[MASK.flatten() == 1]
    assert torch.allclose(batch.mean(values), flat.mean(real), atol=1e-6)
    assert torch.equal(batch.max(values), flat.max(real))
    assert torch.equal(values[batch.first()], real[flat.first()])
    assert batch.lengths.tolist() == [5, 2, 3]
    assert batch.positions.tolist()[:5] == [0, 1, 2, 3, 4]


# The module that becomes an ONNX file: its outputs.


MASK_GRAPHS = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
IDS_GRAPHS = torch.tensor([[3, 5, 9, 4], [7, 2, 0, 0]])


@pytest.mark.parametrize(
    ("heads", "names"),
    [
        ({"sequence": 3}, ("logits", "pooler_output", "last_hidden_state")),
        ({"token": 5}, ("logits", "last_hidden_state")),
        ({"span": 2}, ("start_logits", "end_logits", "last_hidden_state")),
        ({"masked": 0}, ("logits", "last_hidden_state")),
        ({"masked": 0, "next": 2}, ("logits", "seq_relationship_logits", "pooler_output", "last_hidden_state")),
        ({"pooled": 0}, ("pooler_output", "last_hidden_state")),
        ({}, ("last_hidden_state",)),
    ],
)
@torch.inference_mode()
def test_every_head_has_its_output(heads: dict[str, int], names: tuple[str, ...]) -> None:
    network = random_checkpoint("tiny-bert", heads).network
    assert isinstance(network, Transformer)
    graph = encoder_graph(padded_copy(network))
    assert graph.outputs == names
    outputs = dict(zip(names, graph.module(IDS_GRAPHS, MASK_GRAPHS, torch.zeros_like(IDS_GRAPHS)), strict=True))
    expected = network(Ragged.of([[3, 5, 9, 4], [7, 2]], segments=[[0] * 4, [0] * 2]))
    assert torch.allclose(
        outputs["last_hidden_state"].flatten(0, 1)[MASK_GRAPHS.flatten() == 1], expected.hidden, atol=1e-5
    )
    if "logits" in names:
        logits = outputs["logits"]
        logits = logits if "sequence" in heads else logits.flatten(0, 1)[MASK_GRAPHS.flatten() == 1]
        assert torch.allclose(logits, expected.logits, atol=1e-4)
    if "span" in heads:
        start = outputs["start_logits"].flatten()[MASK_GRAPHS.flatten() == 1]
        assert torch.allclose(start, expected.logits[:, 0], atol=1e-5)
