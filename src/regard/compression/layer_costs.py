"""Which layers lose most in int8."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.export.int8_linear import Int8Linear, int8_layers
from regard.export.smoothing import smoothing_scales
from regard.model.transformer import Transformer
from regard.predict.model import Model
from regard.ragged import Ragged


def layer_costs(model: Model, batch_ids: Sequence[Sequence[int]]) -> dict[str, float]:
    """How far the hidden states move if one layer is computed in int8, for each layer; the largest first."""
    network = model.network
    assert isinstance(network, Transformer)
    layers = int8_layers(network)
    scales = smoothing_scales(network, layers)
    batch = Ragged.of(batch_ids)
    costs = {}
    with torch.inference_mode():
        exact = network.read(batch)
        for name, layer in layers.items():
            network.set_submodule(name, Int8Linear(layer, scales[name]))
            try:
                costs[name] = float((network.read(batch) - exact).norm() / exact.norm())
            finally:
                network.set_submodule(name, layer)
    return dict(sorted(costs.items(), key=lambda item: -item[1]))
