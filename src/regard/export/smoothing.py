"""Scales that make activations and weights equally easy to round to 8 bits (SmoothQuant, Xiao et al. 2023).

In a Transformer a few dimensions of the hidden states are 10 times as large as the others. Rounded with one scale, the
others lose most of their precision. In plain terms, it works as follows:

1. The network runs on random tokens, and the largest absolute value of each input dimension of each layer is noted.
   Which dimensions are large depends on the weights, hardly on the text.
2. Each input dimension is divided by the root of its largest value over the largest weight that reads it, and these
   weights are multiplied by the same number: the product stays the same, and both factors are even.

Shapes: N tokens, I numbers in, O numbers out.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.model.linear import Linear
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.ragged import Ragged

SEQUENCES, TOKENS = 16, 24  # of the random batch
SMALLEST = 0.05  # of the mean


def smoothing_scales(network: Network, layers: Mapping[str, Linear]) -> dict[str, Tensor]:
    """(I,) the number by which each input dimension of each layer is divided, by the name of the layer."""
    return {
        name: smoothing_scale(largest_I, layers[name]) for name, largest_I in largest_inputs(network, layers).items()
    }


def largest_inputs(network: Network, layers: Mapping[str, Linear]) -> dict[str, Tensor]:
    """(I,) the largest absolute value of each input dimension of each layer on random tokens, by its name."""
    largest: dict[str, Tensor] = {}

    def note(name: str, x_NI: Tensor) -> None:
        now_I = x_NI.detach().abs().amax(0)
        largest[name] = torch.maximum(largest[name], now_I) if name in largest else now_I

    handles = [
        layer.register_forward_pre_hook(lambda _, inputs, name=name: note(name, inputs[0]))
        for name, layer in layers.items()
    ]
    try:
        _run_on_random_tokens(network)
    finally:
        for handle in handles:
            handle.remove()
    return {name: largest[name] for name in layers if name in largest}


def smoothing_scale(largest_I: Tensor, layer: nn.Linear) -> Tensor:
    """(I,) the number by which each input dimension of a layer is divided."""
    weight_I = layer.weight.detach().abs().amax(0).float()
    return (_at_least(largest_I.float()) / _at_least(weight_I)).sqrt()


def _at_least(values_I: Tensor) -> Tensor:
    """Values not far below their mean: a dimension that no random token used may be used by a text."""
    return values_I.clamp(min=float(values_I.mean()) * SMALLEST + torch.finfo(torch.float32).tiny)


@torch.inference_mode()
def _run_on_random_tokens(network: Network) -> None:
    assert isinstance(network, Transformer)
    config = network.config
    generator = torch.Generator().manual_seed(0)
    length = min(TOKENS, config.max_tokens or TOKENS)

    def random_batch(vocabulary: int) -> Ragged:
        ids = torch.randint(vocabulary, (SEQUENCES * length,), generator=generator)
        return Ragged.from_flat(ids, [length] * SEQUENCES).to(next(network.parameters()).device)

    batch = random_batch(config.vocabulary)
    if config.kind == "encoder-decoder":
        network(batch, random_batch(config.output_vocabulary))
    else:
        network.read(batch)
