"""What is trained, at which rate, with which decay."""

from __future__ import annotations

import pytest
import torch

from regard.checkpoint.source import from_preset
from regard.errors import InputError
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.training.defaults.recipes import fill_from_recipe
from regard.training.engine.optimizer import (
    build_optimizer,
    freeze,
    named_state,
    parameter_groups,
    restore_state,
    set_lr,
)
from regard.training.settings import Settings


@pytest.fixture
def network() -> Transformer:
    network = from_preset("tiny-bert", heads={"sequence": 3}).network
    assert isinstance(network, Transformer)
    return network


def by_name(network: Network, settings: Settings) -> dict[str, tuple[float, float]]:
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    return {
        names[id(parameter)]: (group["lr_scale"], group["weight_decay"])
        for group in parameter_groups(network, settings)
        for parameter in group["params"]
    }


def test_norms_and_biases_do_not_decay(network: Transformer) -> None:
    result = by_name(network, Settings(weight_decay=0.1))
    assert result.keys() == dict(network.named_parameters()).keys()
    for name, (share, decay) in result.items():
        assert share == 1
        assert decay == (0.0 if "norm" in name or name.endswith("bias") else 0.1), name


def test_rates_by_layer(network: Transformer) -> None:
    result = by_name(network, Settings(layerwise_lr_decay=0.5))
    shares = {name: share for name, (share, _) in result.items()}
    assert {shares[name] for name in shares if name.startswith("heads.")} == {1.0}
    assert {shares[name] for name in shares if ".layers.1." in name} == {0.5}
    assert {shares[name] for name in shares if ".layers.0." in name} == {0.25}
    assert {shares[name] for name in shares if ".embeddings." in name} == {0.125}
    optimizer = build_optimizer(network, fill_from_recipe(Settings(layerwise_lr_decay=0.5)), lr=1.0)
    set_lr(optimizer, 0.1)
    assert sorted({round(float(group["lr"]), 6) for group in optimizer.param_groups}) == [0.0125, 0.025, 0.05, 0.1]


def test_layers_that_share_their_weights_are_one_layer() -> None:
    checkpoint = by_name(from_preset("tiny-albert", heads={"sequence": 3}).network, Settings(layerwise_lr_decay=0.5))
    assert {share for name, (share, _) in checkpoint.items() if ".layers." in name} == {0.5}
    assert {share for name, (share, _) in checkpoint.items() if ".embeddings." in name} == {0.25}


def test_what_the_first_layer_reads_does_not_learn_faster_than_it() -> None:
    checkpoint = by_name(from_preset("tiny-t5").network, Settings(layerwise_lr_decay=0.5))
    assert {checkpoint[f"{side}.bias.table.weight"][0] for side in ("encoder", "decoder")} == {0.25}
    assert checkpoint["encoder.norm.weight"][0] == 1.0


def test_embeddings_of_a_recurrent_network() -> None:
    network = from_preset("gru-additive").network
    assert by_name(network, Settings(layerwise_lr_decay=0.5))["encoder.tokens.weight"][0] == 0.5
    freeze(network, ["embeddings"])
    assert not network.get_parameter("encoder.tokens.weight").requires_grad


def test_frozen_parts(network: Transformer) -> None:
    freeze(network, ["embeddings", "0"])
    trained = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert not any(".embeddings." in name or ".layers.0." in name for name in trained)
    assert any(".layers.1." in name for name in trained)
    assert by_name(network, Settings()).keys() == trained
    with pytest.raises(
        InputError, match=r'no part "7" to freeze; expected .* a layer from 0 to 1; none alone trains all'
    ):
        freeze(network, ["7"])
    with pytest.raises(InputError, match="nothing is trained"):
        freeze(network, ["encoder", "heads"])


def test_none_alone_freezes_nothing(network: Transformer) -> None:
    freeze(network, ["none"])
    assert all(parameter.requires_grad for parameter in network.parameters())
    with pytest.raises(InputError, match='no part "none" to freeze'):
        freeze(network, ["embeddings", "none"])


def test_what_it_remembers_is_given_back(network: Transformer) -> None:
    def stepped(optimizer: torch.optim.Optimizer) -> None:
        for number, parameter in enumerate(network.parameters()):
            parameter.grad = torch.full_like(parameter, 0.01 * (number + 1))
        optimizer.step()

    first = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    one = build_optimizer(network, fill_from_recipe(Settings()), lr=0.1)
    stepped(one)
    saved_state = {name: tensor.clone() for name, tensor in named_state(network, one).items()}
    stepped(one)
    twice = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(first[name])
    other = build_optimizer(network, fill_from_recipe(Settings()), lr=0.1)
    stepped(other)
    restore_state(network, new_optimizer := build_optimizer(network, fill_from_recipe(Settings()), lr=0.1), saved_state)
    stepped(new_optimizer)
    assert all(torch.equal(parameter, twice[name]) for name, parameter in network.named_parameters())
