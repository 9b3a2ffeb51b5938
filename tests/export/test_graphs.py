"""The module that becomes an ONNX file: its outputs."""

from __future__ import annotations

import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.export.graphs import encoder_graph
from regard.export.padded import padded_copy
from regard.model.transformer import Transformer
from regard.ragged import Ragged

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
IDS = torch.tensor([[3, 5, 9, 4], [7, 2, 0, 0]])


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
    outputs = dict(zip(names, graph.module(IDS, MASK, torch.zeros_like(IDS)), strict=True))
    expected = network(Ragged.of([[3, 5, 9, 4], [7, 2]], segments=[[0] * 4, [0] * 2]))
    assert torch.allclose(outputs["last_hidden_state"].flatten(0, 1)[MASK.flatten() == 1], expected.hidden, atol=1e-5)
    if "logits" in names:
        logits = outputs["logits"]
        logits = logits if "sequence" in heads else logits.flatten(0, 1)[MASK.flatten() == 1]
        assert torch.allclose(logits, expected.logits, atol=1e-4)
    if "span" in heads:
        start = outputs["start_logits"].flatten()[MASK.flatten() == 1]
        assert torch.allclose(start, expected.logits[:, 0], atol=1e-5)
