"""A Transformer as a sum over its input vectors: everything that is not linear is fixed at its value for one text.

Attention weights are fixed, so attention is a weighted sum of values. A norm divides by a fixed standard deviation. An
activation multiplies by a fixed ratio of its output and its input (its tangent through zero); the gate of a gated unit
is a fixed factor. The output does not change, but it is now linear in the input vectors and the biases: an output is
the sum of what each of them contributes, as in DecompX (Modarressi et al. 2023, https://arxiv.org/abs/2306.02873).
Carrying one vector per pair of tokens through all layers is not needed: since all is linear, a contribution is the
product of a vector and the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.model.attention import AttentionKernel
from regard.model.block import FeedForward
from regard.model.heads import HeadTransform

SMALL = 1e-6  # inputs of an activation that count as zero

Activation = Callable[[Tensor], Tensor]


def with_fixed_ratio(activation: Activation) -> Activation:
    """The same function with a fixed ratio of output and input."""

    def linear(x: Tensor) -> Tensor:
        with torch.no_grad():
            safe = torch.where(x.abs() < SMALL, SMALL, x)
            ratio = activation(safe) / safe
        return ratio * x

    return linear


def as_fixed(activation: Activation) -> Activation:
    """The same function as a constant, for gates."""
    return lambda x: activation(x).detach()


def _fix_norm(module: nn.Module, args: tuple[Tensor, ...], value: Tensor) -> Tensor:
    """The norm with a fixed divisor."""
    assert isinstance(module, nn.LayerNorm | nn.RMSNorm)
    x = args[0]
    centered = x - x.mean(-1, keepdim=True) if isinstance(module, nn.LayerNorm) else x
    eps = torch.finfo(x.dtype).eps if module.eps is None else module.eps
    scale = (centered.detach().square().mean(-1, keepdim=True) + eps).rsqrt()
    out = centered * scale if module.weight is None else centered * scale * module.weight
    bias = getattr(module, "bias", None)
    return out if bias is None else out + bias


def _fix_weights(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Queries and keys as constants, so that only values have gradients."""
    q_NHK, k_MGK, v_MGK, call = args
    return q_NHK.detach(), k_MGK.detach(), v_MGK, call


@contextmanager
def linearized(network: nn.Module) -> Iterator[None]:
    """The network with fixed attention weights, norms and activations, while it computes gradients."""
    with ExitStack() as undo:
        for module in network.modules():
            if isinstance(module, nn.LayerNorm | nn.RMSNorm):
                undo.callback(module.register_forward_hook(_fix_norm).remove)
            elif isinstance(module, AttentionKernel):
                undo.callback(module.register_forward_pre_hook(_fix_weights).remove)
            elif isinstance(module, FeedForward | HeadTransform):
                plain = module.activation
                is_gate = isinstance(module, FeedForward) and module.gated
                module.activation = as_fixed(plain) if is_gate else with_fixed_ratio(plain)
                undo.callback(setattr, module, "activation", plain)
        yield


def constants(network: nn.Module) -> list[Tensor]:
    """The vectors that the network adds: biases of linear layers, norms and heads."""
    biases = [getattr(module, "bias", None) for module in network.modules()]
    unique = {id(bias): bias for bias in biases if isinstance(bias, Tensor) and bias.is_floating_point()}
    return list(unique.values())


@contextmanager
def with_gradients(tensors: list[Tensor]) -> Iterator[None]:
    """Let these tensors have gradients for a while."""
    off = [tensor for tensor in tensors if not tensor.requires_grad]
    for tensor in off:
        tensor.requires_grad_()
    try:
        yield
    finally:
        for tensor in off:
            tensor.requires_grad_(False)
