"""A linearized network gives the same answers."""

from __future__ import annotations

import torch
from tests.look.tiny_models import model

from regard.look.explain.linearized import linearized
from regard.model import hooks as taps
from regard.ragged import Ragged


def test_a_linearized_network_gives_the_same_answers_and_is_restored() -> None:
    for name, heads in (("tiny-bert", {"sequence": 2}), ("tiny-llama", None), ("tiny-modernbert", {"sequence": 2})):
        loaded = model(name, heads)
        batch = Ragged.of([[5, 6, 7, 8]])
        before = loaded.network(batch).logits
        activations = [getattr(module, "activation", None) for module in loaded.network.modules()]
        with linearized(loaded.network):
            torch.testing.assert_close(loaded.network(batch).logits, before, atol=1e-5, rtol=1e-5)
        assert activations == [getattr(module, "activation", None) for module in loaded.network.modules()]
        assert not taps.has_hooks(loaded.network)
