"""Modules that become ONNX files: their outputs, and decoding with their caches."""

from __future__ import annotations

import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.export.graphs import DecoderModule, Graph, graphs
from regard.export.padded import padded_copy
from regard.model.transformer import Transformer
from regard.ragged import Ragged

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
IDS = torch.tensor([[3, 5, 9, 4], [7, 2, 0, 0]])


def parts(name: str, heads: dict[str, int] | None = None) -> tuple[Transformer, dict[str, Graph]]:
    network = random_checkpoint(name, heads).network
    assert isinstance(network, Transformer)
    return network, {graph.file: graph for graph in graphs(padded_copy(network))}


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
    network, by_file = parts("tiny-bert", heads)
    graph = by_file["model"]
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


@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-llama"])
@torch.inference_mode()
def test_a_decoder_continues_from_its_cache(name: str) -> None:
    network, by_file = parts(name)
    module = by_file["model"].module
    assert isinstance(module, DecoderModule)
    layers, config = network.main.depth, network.config
    empty = [torch.zeros(2, config.kv_heads, 0, config.head_width)] * (2 * layers)
    ids = torch.tensor([[3, 5, 9, 4], [7, 2, 8, 6]])
    expected = network(Ragged.of(ids.tolist())).logits.unflatten(0, (2, 4))
    first = module(ids[:, :3], torch.ones(2, 3, dtype=torch.int64), *empty)
    assert torch.allclose(first[0], expected[:, :3], atol=1e-4)
    second = module(ids[:, 3:], torch.ones(2, 4, dtype=torch.int64), *first[1:])
    assert torch.allclose(second[0], expected[:, 3:], atol=1e-4)
    assert second[1].shape[2] == 4


@pytest.mark.parametrize("name", ["tiny-t5", "tiny-bart", "tiny-marian", "tiny-transformer", "tiny-pegasus"])
@torch.inference_mode()
def test_an_encoder_decoder_in_three_files(name: str) -> None:
    network, by_file = parts(name)
    assert list(by_file) == ["encoder_model", "decoder_model", "decoder_with_past_model"]
    source = Ragged.of([[3, 5, 9, 4], [7, 2]])
    target = torch.tensor([[1, 6, 2], [1, 9, 4]])
    expected = network(source, Ragged.of(target.tolist())).logits.unflatten(0, (2, 3))
    (memory,) = by_file["encoder_model"].module(IDS, MASK)
    first = by_file["decoder_model"].module(target[:, :2], memory, MASK)
    assert torch.allclose(first[0], expected[:, :2], atol=1e-4)
    assert len(first) == len(by_file["decoder_model"].outputs)
    second = by_file["decoder_with_past_model"].module(target[:, 2:], MASK, *first[1:])
    assert torch.allclose(second[0], expected[:, 2:], atol=1e-4)
    assert len(second) == len(by_file["decoder_with_past_model"].outputs)
