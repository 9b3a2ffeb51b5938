"""Scales per input dimension leave the product unchanged and make its factors even."""

from __future__ import annotations

import torch
from tests.predict.models import random_checkpoint

from regard.export.int8_linear import int8_layers
from regard.export.smoothing import smoothing_scales


def test_every_layer_has_a_scale_for_each_input() -> None:
    network = random_checkpoint("tiny-bert").network
    layers = int8_layers(network)
    scales = smoothing_scales(network, layers)
    assert scales.keys() == layers.keys()
    for name, layer in layers.items():
        assert scales[name].shape == (layer.in_features,)
        assert bool((scales[name] > 0).all())
        assert bool(scales[name].isfinite().all())
    assert not any(layer._forward_pre_hooks for layer in layers.values())


def test_an_encoder_decoder_has_scales_in_both_parts() -> None:
    network = random_checkpoint("tiny-marian").network
    scales = smoothing_scales(network, int8_layers(network))
    assert {name.split(".")[0] for name in scales} == {"encoder", "decoder"}


def test_a_large_dimension_gets_a_large_scale() -> None:
    network = random_checkpoint("tiny-bert").network
    layers = int8_layers(network)
    norm = network.get_submodule("encoder.layers.0.attention_norm")
    with torch.no_grad():
        norm.get_parameter("weight")[3] *= 100
    scales = smoothing_scales(network, layers)
    assert scales["encoder.layers.0.feedforward.up"].argmax() == 3
