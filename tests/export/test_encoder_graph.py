"""The graph computes what torch computes: in fp32 nearly to the bit, in int8 up to the rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.predict.models import TINY, random_checkpoint
from torch.testing import assert_close

from regard.export.encoder_graph import MAX_LARGE_UNITS, encoder_graph, fits_encoder_graph
from regard.export.int8_encoder import Int8Encoder
from regard.export.int8_linear import int8_layers
from regard.model.block import Block
from regard.model.transformer import Transformer
from regard.ragged import Ragged

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
FITTING = ["tiny-bert", "tiny-roberta", "tiny-distilbert", "tiny-electra", "tiny-albert"]
ROWS = [[3, 5, 9, 11, 8], [7, 2], [4, 4]]
SEGMENTS = [[0, 0, 0, 1, 1], [0, 1], [0, 0]]


def network_of(name: str, seed: int = 0) -> Transformer:
    """A network whose norms and biases are not the identity."""
    network = random_checkpoint(name).network
    assert isinstance(network, Transformer)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return network


def similarity(network: Transformer, **settings: object) -> float:
    opened = Int8Encoder(network, encoder_graph(network, **settings).SerializeToString())  # type: ignore[arg-type]
    batch = Ragged.of(ROWS, segments=SEGMENTS if network.config.segments > 1 else None)
    with torch.inference_mode():
        expected, actual = network.read(batch), opened.read(batch)
    return torch.cosine_similarity(expected.flatten(), actual.flatten(), dim=0).item()


@pytest.fixture(params=FITTING)
def network(request: pytest.FixtureRequest) -> Transformer:
    return network_of(request.param)


def test_fp32_is_exact_up_to_the_formula_of_gelu(network: Transformer) -> None:
    assert similarity(network, exclude=list(int8_layers(network))) > 1 - 1e-5


@pytest.mark.parametrize("settings", [{}, {"fp16": True, "attention": "MultiHeadAttention"}, {"reduce_range": True}])
def test_int8_is_close(settings: dict[str, object]) -> None:
    assert similarity(network_of("tiny-bert"), **settings) > 0.99


def test_layers_of_one_block_can_stay_in_fp32(network: Transformer) -> None:
    names = list(int8_layers(network))
    model = encoder_graph(network, exclude=names[:2])
    products = [node.op_type for node in model.graph.node]
    assert "Split" in products
    assert "DynamicQuantizeMatMul" in products
    assert similarity(network, exclude=names[:2]) > 0.99


def test_which_networks_fit() -> None:
    names = {name for name in TINY if fits_encoder_graph(random_checkpoint(name).network)}
    assert set(FITTING) <= names
    assert not names & {"tiny-modernbert", "tiny-gpt2", "tiny-llama", "tiny-t5", "tiny-transformer"}


def test_norms_before_the_parts_of_a_block() -> None:
    config = replace(network_of("tiny-bert").config, norm_first=True, embedding_norm=True, activation="relu")
    torch.manual_seed(0)
    network = Transformer(config, heads={}).eval()
    assert similarity(network, exclude=list(int8_layers(network))) > 1 - 1e-6
    assert similarity(network) > 0.99
    assert_some_tokens(network)


def test_no_norm_of_the_embeddings() -> None:
    config = replace(network_of("tiny-bert").config, norm_first=True, embedding_norm=False)
    torch.manual_seed(0)
    network = Transformer(config, heads={}).eval()
    assert similarity(network, exclude=list(int8_layers(network))) > 1 - 1e-5
    assert_some_tokens(network)


def test_the_last_block_can_compute_some_tokens_alone(network: Transformer) -> None:
    assert_some_tokens(network)


def assert_some_tokens(network: Transformer) -> None:
    """The first tokens, tokens in any order, some of them twice, none of the second sequence."""
    batch = Ragged.of(ROWS, segments=SEGMENTS if network.config.segments > 1 else None)
    one = Ragged.of(ROWS[:1], segments=SEGMENTS[:1] if network.config.segments > 1 else None)
    for exclude in (list(int8_layers(network)), []):
        opened = Int8Encoder(network, encoder_graph(network, exclude=exclude).SerializeToString())
        for rows in (batch, one):
            all_ND = opened.run_session(rows)
            places = torch.tensor([8, 3, 1, 3, 7] if rows is batch else [3, 1, 3])
            for at in (rows.first(), places):
                # rounding depends on the largest number of the tokens that are computed
                assert_close(opened.run_session(rows, at=at), all_ND[at], atol=1e-5 if exclude else 0.15, rtol=0)
            order = torch.randperm(rows.tokens, generator=torch.Generator().manual_seed(0))
            assert_close(opened.run_session(rows, at=order), all_ND[order], atol=1e-6, rtol=0)


def test_units_with_large_numbers_stay_in_fp32() -> None:
    network = network_of("tiny-bert")
    assert network.encoder is not None
    block = network.encoder.layers[0]
    assert isinstance(block, Block)
    with torch.no_grad():
        block.feedforward.up.bias[3] += 60
    model = encoder_graph(network)
    assert [node.op_type for node in model.graph.node].count("MatMul") == 2
    assert similarity(network) > 0.99


def test_shared_layers_are_stored_once() -> None:
    network = network_of("tiny-albert")
    sizes = [tensor.dims for tensor in encoder_graph(network).graph.initializer if len(tensor.dims) == 2]
    assert len(sizes) <= len(int8_layers(network)) + 2 + 1 + 2 * MAX_LARGE_UNITS
    assert np.all([len(size) == 2 for size in sizes])
