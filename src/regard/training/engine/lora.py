"""Small matrices beside frozen ones (LoRA, Hu et al. 2021): few weights are trained, and merged at the end."""

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

PLACES = ("qkv", "query", "memory", "out", "up", "down")  # dense layers of attention and feed-forward parts


class LoraLinear(nn.Module):
    """A dense layer that keeps its weights, plus the product of two narrow matrices: it starts as the layer it was."""

    def __init__(self, base: nn.Linear, lora: Lora, generator: torch.Generator) -> None:
        super().__init__()
        self.weight, self.bias = base.weight, base.bias
        drawn = torch.empty(lora.rank, base.in_features).uniform_(-1, 1, generator=generator)
        self.lower = nn.Parameter((drawn / math.sqrt(base.in_features)).to(base.weight))
        self.raised = nn.Parameter(base.weight.new_zeros(base.out_features, lora.rank))
        self.scale, self.dropout = lora.alpha / lora.rank, Dropout(lora.dropout)

    def forward(self, x_ND: Tensor) -> Tensor:
        low_NR = F.linear(self.dropout(x_ND), self.lower)
        return F.linear(x_ND, self.weight, self.bias) + F.linear(low_NR, self.raised) * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One dense layer that says the same."""
        wide, narrow = self.weight.shape
        plain = nn.Linear(narrow, wide, bias=self.bias is not None, device="meta")
        plain.weight, plain.bias = self.weight, self.bias
        plain.weight += (self.raised.double() @ self.lower.double() * self.scale).to(self.weight)
        return plain


def add_lora(network: Network, lora: Lora, *, seed: int) -> None:
    """Freeze everything but the heads, and give every block small matrices to train."""
    highest = network.config.width
    if lora.rank > highest:
        raise InputError(
            f"{setting('lora.rank')} is {lora.rank}, but the network is {highest} wide. Use a rank far below that."
        )
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith("heads."))
    if network.config.tied:  # words a head shares with the embeddings
        for module in network.modules():
            if isinstance(module, nn.Embedding):
                module.weight.requires_grad_(False)
    for part, place in list(_dense(network)):
        setattr(part, place, LoraLinear(getattr(part, place), lora, generator))


def merge_lora(network: Network) -> None:
    """Plain dense layers again, with what was learned in them."""
    for part in [part for part in network.modules() if isinstance(part, Attention | FeedForward)]:
        for place, layer in list(part.named_children()):
            if isinstance(layer, LoraLinear):
                setattr(part, place, layer.merged())
    network.requires_grad_(True)


def _dense(network: Network) -> Iterator[tuple[nn.Module, str]]:
    for part in network.modules():
        if isinstance(part, Attention | FeedForward):
            for place in PLACES:
                if isinstance(getattr(part, place, None), nn.Linear):
                    yield part, place
