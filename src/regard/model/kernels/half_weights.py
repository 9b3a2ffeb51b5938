"""Weights in bfloat16 for a training step, converted all at once.

Autocast converts every weight by a kernel of its own in each forward pass, and every gradient by another one: 280 of
the 790 kernels in a step of a six-layer encoder, and a fifth of its time. `HalfWeights` holds a copy in bfloat16 of the
weights of all linear layers and norms. Few kernels make all copies, and few add all gradients to those in fp32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.model.kernels.gpu_linear import HALF
from regard.model.transformer import Transformer

LAYERS = (nn.Linear, nn.LayerNorm, nn.RMSNorm)  # the layers whose weights are copied
MAX_WEIGHTS = 200_000_000  # above this, arithmetic takes nearly all of the time, and the memory is needed


class HalfWeights:
    """Copies of weights in a dtype of 16 bits that take their place for a forward and backward pass.

    The weights of the network stay in fp32; they and their gradients are what the optimizer reads. A weight that
    another kind of layer has too, such as an embedding that is also the output layer, is not copied.
    """

    def __init__(self, network: nn.Module, dtype: torch.dtype) -> None:
        self.places = _places(network)
        self.weights: list[Tensor] = list({id(weight): weight for _, _, weight in self.places}.values())
        self.copies: list[Tensor] = [
            nn.Parameter(torch.empty_like(weight, dtype=dtype), requires_grad=weight.requires_grad)
            for weight in self.weights
        ]
        self.copy_of = {id(weight): copy for weight, copy in zip(self.weights, self.copies, strict=True)}
        self.others = [
            parameter
            for parameter in network.parameters()
            if parameter.requires_grad and id(parameter) not in self.copy_of
        ]
        self.converted = {id(weight): torch.empty_like(weight) for weight in self.weights if weight.requires_grad}

    @staticmethod
    def pays(network: nn.Module, dtype: torch.dtype) -> bool:
        """Whether the network computes in such a dtype and is small, a Transformer, and not in 16 bits itself."""
        if dtype not in HALF or not isinstance(network, Transformer):
            return False
        parameters = list(network.parameters())
        in_fp32 = all(parameter.dtype == torch.float32 for parameter in parameters)
        return in_fp32 and sum(parameter.numel() for parameter in parameters) <= MAX_WEIGHTS

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Compute with the copies in this block. At its end, their gradients are added to those of the weights."""
        with torch.no_grad():
            torch._foreach_copy_(self.copies, self.weights)
        sums = [parameter.grad for parameter in self.others]
        for parameter in (*self.others, *self.copies):
            parameter.grad = None  # a new gradient is then stored, not added by a kernel of its own
        for module, name, weight in self.places:
            module._parameters[name] = self.copy_of[id(weight)]  # type: ignore[assignment]
        try:
            yield
        finally:
            new = [parameter.grad for parameter in self.others]
            for module, name, weight in self.places:
                module._parameters[name] = weight
            for parameter, grad in zip(self.others, sums, strict=True):
                parameter.grad = grad
        with torch.no_grad():
            add_gradients([*self._converted_gradients(), *zip(self.others, new, strict=True)])

    def _converted_gradients(self) -> list[tuple[Tensor, Tensor | None]]:
        """Each weight with the gradient of its copy in fp32."""
        pairs = zip(self.weights, self.copies, strict=True)
        received = {id(weight): copy.grad for weight, copy in pairs if copy.grad is not None}
        if received:
            torch._foreach_copy_([self.converted[key] for key in received], list(received.values()))
        return [(weight, self.converted[id(weight)]) for weight in self.weights if id(weight) in received]


def add_gradients(new: Sequence[tuple[Tensor, Tensor | None]]) -> None:
    """Add to the gradients of tensors, by few kernels. Where there is nothing to add, nothing changes."""
    sums, terms = [], []
    for parameter, grad in new:
        if grad is not None:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            sums.append(parameter.grad)
            terms.append(grad)
    if sums:
        torch._foreach_add_(sums, terms)


def _places(network: nn.Module) -> list[tuple[nn.Module, str, nn.Parameter]]:
    """Each layer, the name of a weight in it and the weight, for all weights that only such layers have."""
    elsewhere = {
        id(parameter)
        for module in network.modules()
        if not isinstance(module, LAYERS)
        for parameter in module.parameters(recurse=False)
    }
    return [
        (module, name, parameter)
        for module in network.modules()
        if isinstance(module, LAYERS)
        for name, parameter in module.named_parameters(recurse=False)
        if id(parameter) not in elsewhere
    ]
