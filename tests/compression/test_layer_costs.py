"""Which layers lose most in int8."""

from __future__ import annotations

import torch

from regard.compression.layer_costs import layer_costs
from regard.compression.teacher import Teacher
from regard.export.int8_linear import Int8Linear, int8_layers


def test_every_layer_has_a_cost_and_the_network_is_unchanged(teacher: Teacher) -> None:
    network = teacher.model.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    costs = layer_costs(teacher.model, [[2, 5, 6, 3], [2, 7, 3]])
    assert costs.keys() == int8_layers(network).keys()
    assert list(costs.values()) == sorted(costs.values(), reverse=True)
    assert not any(isinstance(module, Int8Linear) for module in network.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
