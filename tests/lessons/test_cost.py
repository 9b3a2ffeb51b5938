"""The cost of a layer: memory that grows as it should, and clear words for an unknown layer."""

from __future__ import annotations

import pytest
import torch

from regard.errors import InputError
from regard.lessons.cost import LAYERS, layer_cost


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_is_measured(layer: str) -> None:
    threads = torch.get_num_threads()
    cost = layer_cost(layer, length=16, width=32, repeats=1)
    assert (cost.layer, cost.length, cost.width) == (layer, 16, 32)
    assert cost.milliseconds > 0
    assert cost.megabytes > 16 * 32 * 4 / 2e6
    assert torch.get_num_threads() == threads


def test_only_stored_attention_keeps_all_weights() -> None:
    growth = {}
    for layer in LAYERS:
        short, long = (layer_cost(layer, length=length, width=32, repeats=1) for length in (64, 256))
        growth[layer] = long.megabytes / short.megabytes
    assert growth["stored attention"] > 6
    assert max(growth[layer] for layer in LAYERS if layer != "stored attention") < 4.5


def test_unknown_layer() -> None:
    with pytest.raises(InputError, match=r'"atention" is not a layer.*Did you mean "attention"'):
        layer_cost("atention", length=8, width=32)
