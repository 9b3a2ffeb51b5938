"""The block that every family is a setting of.

Shapes: N tokens, D width, F inner width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import ModelConfig
from regard.model.attention import Attention, ForwardContext, chosen
from regard.model.cache import LayerCache
from regard.model.kernels.cpu_autograd import Dropout, gelu, gelu_tanh
from regard.model.linear import Linear

PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": gelu,
    "gelu-tanh": gelu_tanh,
    "silu": F.silu,
    "tanh": F.tanh,
}
Sublayer = Callable[[Tensor], Tensor]
GATED = {"geglu": "gelu", "geglu-tanh": "gelu-tanh", "swiglu": "silu"}


def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """The bend of that name; of a gated unit, the bend of its gate."""
    return PLAIN[GATED.get(name, name)]


class LayerNorm(nn.LayerNorm):
    """Computed in fp32 under autocast, handed on in the number format it came in: half the memory to move."""

    def forward(self, x_ND: Tensor) -> Tensor:
        return super().forward(x_ND).to(x_ND.dtype)


class RMSNorm(nn.RMSNorm):
    """The same without the mean."""

    def forward(self, x_ND: Tensor) -> Tensor:
        return super().forward(x_ND).to(x_ND.dtype)


def build_norm(config: ModelConfig, width: int, *, bias: bool | None = None) -> nn.Module:
    if config.norm == "rms":
        return RMSNorm(width, eps=config.eps)
    return LayerNorm(width, eps=config.eps, bias=config.bias if bias is None else bias)


class FeedForward(nn.Module):
    """Each token on its own: wider, bent, back. A gated unit multiplies the bent half with the other."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated, self.activation = config.activation in GATED, activation_function(config.activation)
        self.up = Linear(config.width, config.ffn_width * (2 if self.gated else 1), bias=config.bias)
        self.down = Linear(config.ffn_width, config.width, bias=config.bias)

    def forward(self, x_ND: Tensor) -> Tensor:
        wide_NF = self.up(x_ND)
        if self.gated:
            bent_NF, other_NF = wide_NF.chunk(2, dim=-1)
            out_ND: Tensor = self.down(self.activation(bent_NF) * other_NF)
        else:
            out_ND = self.down(self.activation(wide_NF))
        return out_ND


class Block(nn.Module):
    """Look around, (look at the memory,) think."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        causal: bool = False,
        local: bool = False,
        cross: bool = False,
        first: bool = False,
    ) -> None:
        super().__init__()
        self.norm_first = config.norm_first
        self.attention = Attention(config, causal=causal, local=local)
        normed = first and config.norm_first and config.embedding_norm  # a norm of normed embeddings would do nothing
        self.attention_norm = nn.Identity() if normed else build_norm(config, config.width)
        self.cross = Attention(config, cross=True) if cross else None
        self.cross_norm = build_norm(config, config.width) if cross else None
        self.feedforward = FeedForward(config)
        self.feedforward_norm = build_norm(config, config.width)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x_ND: Tensor, flow: ForwardContext, store: LayerCache | None = None, at: Tensor | None = None
    ) -> Tensor:
        """The stream after the block, or only what it is `at` some places: nothing else is worked out behind the last
        attention."""
        around, across = (at, None) if self.cross is None else (None, at)
        x_ND = self.add_residual(
            x_ND, partial(self.attention, flow=flow, store=store, at=around), self.attention_norm, around
        )
        if self.cross is not None and self.cross_norm is not None:
            x_ND = self.add_residual(
                x_ND, partial(self.cross, flow=flow, store=store, at=across), self.cross_norm, across
            )
        return self.add_residual(x_ND, self.feedforward, self.feedforward_norm)

    def add_residual(self, x_ND: Tensor, part: Sublayer, norm: nn.Module, at: Tensor | None = None) -> Tensor:
        """What the part says, added to the stream: x + f(norm(x)), or post-norm norm(x + f(x))."""
        out_ND: Tensor
        if self.norm_first:
            out_ND = chosen(x_ND, at) + self.dropout(part(norm(x_ND)))
        else:
            out_ND = norm(chosen(x_ND, at) + self.dropout(part(x_ND)))
        return out_ND
