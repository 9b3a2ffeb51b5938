"""Networks are built from settings, with initial weights."""

from dataclasses import replace

import pytest
import torch
from tests.presets import transformer_config
from torch import nn

from regard.checkpoint.families import preset
from regard.config import SCORES, AttentionConfig
from regard.model.initialization import initialize
from regard.model.network import build_network
from regard.model.recurrent.bidirectional_lm import BidirectionalNetwork
from regard.model.recurrent.networks import RecurrentNetwork
from regard.model.transformer import Transformer

# Networks built from their settings.


def test_a_network_can_be_laid_out_without_storage():
    with torch.device("meta"):
        network = Transformer(transformer_config("bert-large-uncased"), {"pooled": 0})
    assert {parameter.device.type for parameter in network.parameters()} == {"meta"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiny-bert", Transformer),
        ("tiny-t5", Transformer),
        ("tiny-gru", RecurrentNetwork),
        ("tiny-lstm-language", RecurrentNetwork),
        ("tiny-elmo", BidirectionalNetwork),
    ],
)
def test_settings_decide_the_class_of_the_network(name, kind):
    chosen = preset(name)
    network = build_network(chosen.config, chosen.heads)
    assert type(network) is kind
    assert set(chosen.heads) <= set(network.heads)


WIDE = replace(transformer_config("tiny-bert"), width=128, ffn_width=256, vocabulary=500)


def made(config, heads=None, *, seed=0):
    network = Transformer(config, heads)
    for parameter in network.parameters():
        nn.init.constant_(parameter, torch.nan)
    initialize(network, config, generator=torch.Generator().manual_seed(seed))
    return network


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-modernbert", "tiny-llama", "tiny-t5", "tiny-bart", "tiny-electra"])
def test_every_weight_is_random_and_the_seed_decides(name):
    made_of = preset(name)
    one, same, other = (made(made_of.config, made_of.heads, seed=seed).state_dict() for seed in (0, 0, 1))
    for path, weight in one.items():
        assert weight.isfinite().all(), path
        assert torch.equal(weight, same[path]), path
    matrices = [path for path in one if one[path].dim() == 2]
    assert len(matrices) > 6
    assert not any(torch.equal(one[path], other[path]) for path in matrices)


@pytest.mark.parametrize("score", SCORES)
def test_weights_of_learned_scores_are_finite(score):
    network = made(replace(WIDE, attention=AttentionConfig(4, kv_heads=2, score=score)))
    assert all(parameter.isfinite().all() for parameter in network.parameters())


def test_the_global_generator_is_left_alone_when_one_is_given():
    network, before = Transformer(WIDE), torch.get_rng_state()
    initialize(network, WIDE, generator=torch.Generator())
    assert torch.equal(torch.get_rng_state(), before)


def test_biases_are_zero_and_norms_one():
    network = made(WIDE, {"sequence": 2})
    for module in network.modules():
        if isinstance(module, nn.Linear):
            assert not module.bias.any()
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all()
            assert not module.bias.any()


def test_the_spread_is_that_of_the_settings():
    network = made(replace(WIDE, init_std=0.05), {"pooled": 0})
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Embedding) and module.weight.numel() > 1000:
            assert module.weight.std().item() == pytest.approx(0.05, rel=0.05)
            assert module.weight.mean().item() == pytest.approx(0.0, abs=0.005)


def test_without_a_spread_it_follows_the_fan_in():
    layer = made(replace(WIDE, init_std=None)).encoder.layers[0]
    assert layer.feedforward.up.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
    assert layer.feedforward.down.weight.std().item() == pytest.approx(256**-0.5, rel=0.05)


def test_residual_outputs_of_pre_norm_networks_start_smaller():
    config = replace(WIDE, norm_first=True, layers=8)
    layer = made(config).encoder.layers[3]
    for weight in (layer.attention.out.weight, layer.feedforward.down.weight):
        assert weight.std().item() == pytest.approx(0.02 / 16**0.5, rel=0.05)
    assert layer.feedforward.up.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert made(WIDE).encoder.layers[0].attention.out.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_queries_of_an_unscaled_dot_product_start_smaller():
    qkv = made(replace(WIDE, attention=AttentionConfig(4, score="dot"))).encoder.layers[0].attention.qkv.weight
    assert qkv[:128].std().item() == pytest.approx(0.02 * 32**-0.5, rel=0.05)
    assert qkv[128:].std().item() == pytest.approx(0.02, rel=0.05)
