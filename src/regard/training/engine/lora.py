"""LoRA (Hu et al. 2021, https://arxiv.org/abs/2106.09685): train low-rank updates of frozen weights.

A frozen weight W of a linear layer gets two small trainable matrices A (rank, in) and B (out, rank); the layer computes
x W^T + (x A^T) B^T * alpha / rank. B starts at zero, so training starts from the original model. At the end the product
is added to W.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.errors import InputError, setting
from regard.model.attention import Attention
from regard.model.block import FeedForward
from regard.model.kernels.cpu_autograd import Dropout
from regard.model.network import Network
from regard.training.settings import Lora

LAYERS = ("qkv", "query", "memory", "out", "up", "down")  # linear layers of attention and feed-forward


class LoraLinear(nn.Module):
    """A linear layer with frozen weights plus a trainable low-rank update that starts at zero."""

    def __init__(self, base: nn.Linear, lora: Lora, generator: torch.Generator) -> None:
        super().__init__()
        self.weight, self.bias = base.weight, base.bias
        values = torch.empty(lora.rank, base.in_features).uniform_(-1, 1, generator=generator)
        self.lower = nn.Parameter((values / math.sqrt(base.in_features)).to(base.weight))
        self.raised = nn.Parameter(base.weight.new_zeros(base.out_features, lora.rank))
        self.scale = lora.alpha / lora.rank
        self.dropout = Dropout(lora.dropout)

    def forward(self, x_ND: Tensor) -> Tensor:
        low_NR = F.linear(self.dropout(x_ND), self.lower)
        return F.linear(x_ND, self.weight, self.bias) + F.linear(low_NR, self.raised) * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear layer with the same outputs."""
        out_features, in_features = self.weight.shape
        plain = nn.Linear(in_features, out_features, bias=self.bias is not None, device="meta")
        plain.weight, plain.bias = self.weight, self.bias
        plain.weight += (self.raised.double() @ self.lower.double() * self.scale).to(self.weight)
        return plain


def add_lora(network: Network, lora: Lora, *, seed: int) -> None:
    """Freeze everything but the heads, and add trainable low-rank updates to every block."""
    width = network.config.width
    if lora.rank > width:
        raise InputError(
            f"{setting('lora.rank')} is {lora.rank}, but the width of the network is {width}. Use a much smaller rank."
        )
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith("heads."))
    if network.config.tied:  # a head shares its matrix with the embeddings
        for module in network.modules():
            if isinstance(module, nn.Embedding):
                module.weight.requires_grad_(False)
    for part, name in list(_linear_layers(network)):
        setattr(part, name, LoraLinear(getattr(part, name), lora, generator))


def merge_lora(network: Network) -> None:
    """Replace every LoraLinear by one linear layer with the update added to its weights."""
    for part in [part for part in network.modules() if isinstance(part, Attention | FeedForward)]:
        for name, layer in list(part.named_children()):
            if isinstance(layer, LoraLinear):
                setattr(part, name, layer.merged())
    network.requires_grad_(True)


def _linear_layers(network: Network) -> Iterator[tuple[nn.Module, str]]:
    for part in network.modules():
        if isinstance(part, Attention | FeedForward):
            for name in LAYERS:
                if isinstance(getattr(part, name, None), nn.Linear):
                    yield part, name
