"""The layer that averages all tokens: an ordinary block whose first token holds the mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.config import PoolConfig
from regard.model.mean_layer import append_mean_layer, can_average, ends_with_mean, set_identity_pooler
from regard.model.network import Network
from regard.ragged import Ragged


@pytest.fixture
def network() -> Network:
    return from_preset("bert-tiny", heads={"sequence": 3}, vocabulary=100).network


def test_the_first_token_holds_the_normalized_mean(network: Network) -> None:
    batch = Ragged.of([[2, 7, 8, 9, 3], [2, 50, 3]])
    mean_BD = batch.mean(network(batch).hidden)
    append_mean_layer(network)
    first_BD = network(batch).hidden[batch.first()]
    expected_BD = torch.nn.functional.layer_norm(mean_BD, mean_BD.shape[-1:])
    assert torch.cosine_similarity(first_BD, expected_BD).min() > 0.999


def test_config_and_layers_count_the_new_layer(network: Network) -> None:
    layers = network.config.layers
    append_mean_layer(network)
    stack: Any = network.encoder
    assert network.config.layers == layers + 1 == len(stack.layers) == stack.depth


def test_the_layer_is_recognized_after_training(network: Network) -> None:
    assert not ends_with_mean(network)
    append_mean_layer(network)
    assert ends_with_mean(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    assert ends_with_mean(network)


def test_the_queries_can_be_trained(network: Network) -> None:
    """All queries are zero at first; their gradient is not, so that the network may learn what to attend to."""
    append_mean_layer(network)
    set_identity_pooler(network)
    logits: Any = network(Ragged.of([[2, 7, 8, 9, 3]])).logits
    logits[0, 0].backward()
    gradient: Any = network.get_parameter(f"encoder.layers.{network.config.layers - 1}.attention.qkv.weight").grad
    assert gradient[: network.config.width].abs().max() > 0


def test_transformers_computes_the_same(network: Network, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    from regard.checkpoint.write_folder import write_folder

    append_mean_layer(network)
    set_identity_pooler(network)
    checkpoint = replace(from_preset("bert-tiny", heads={"sequence": 3}, vocabulary=100), network=network.eval())
    write_folder(tmp_path / "m", replace(checkpoint, config=network.config))
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "m").eval()
    ids = [2, 7, 8, 9, 3]
    ours = network(Ragged.of([ids])).logits
    assert torch.allclose(theirs(torch.tensor([ids])).logits, ours, atol=1e-5)


@pytest.mark.parametrize(
    ("preset", "possible"),
    [
        ("bert-tiny", True),
        ("roberta-base", True),
        ("distilbert-base", False),
        ("electra-small", False),
        ("albert-base", False),
        ("modernbert-base", False),
        ("gpt2", False),
        ("transformer-small", False),
        ("gru-additive", False),
    ],
)
def test_which_networks_can_average(preset: str, *, possible: bool) -> None:
    assert can_average(from_preset(preset, weights=False).config) is possible


def test_a_pooler_that_averages_already_needs_no_layer() -> None:
    config: Any = from_preset("bert-tiny", weights=False).config
    assert not can_average(replace(config, pool=PoolConfig(pooling="mean")))
