"""The block that every family is a setting of.

Shapes: N tokens, D width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config import ModelConfig
from regard.model.attention import Attention, ForwardContext
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
GATED = {"geglu": "gelu", "geglu-tanh": "gelu-tanh", "swiglu": "silu"}


def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """The activation of that name; of a gated unit, the activation of its gate."""
    return PLAIN[GATED.get(name, name)]


class LayerNorm(nn.LayerNorm):
    """Layer normalization (Ba et al. 2016): subtract the mean, divide by the standard deviation, scale and shift.

    Under autocast it is computed in fp32 and returned in the dtype of its input, which halves the memory traffic. If
    its weights are of that dtype too, one kernel does all of it.
    """

    def forward(self, x_ND: Tensor) -> Tensor:
        with _without_conversions(x_ND, self.weight):
            return super().forward(x_ND).to(x_ND.dtype)


class RMSNorm(nn.RMSNorm):
    """Layer normalization without the mean and the shift (Zhang and Sennrich 2019), same dtype rule."""

    def forward(self, x_ND: Tensor) -> Tensor:
        with _without_conversions(x_ND, self.weight):
            return super().forward(x_ND).to(x_ND.dtype)


def _without_conversions(x_ND: Tensor, weight: Tensor) -> AbstractContextManager[object]:
    """No autocast if input and weight are of the same 16 bits: the kernel itself computes in fp32."""
    device = x_ND.device.type
    converts = x_ND.dtype == weight.dtype != torch.float32 and torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if converts else nullcontext()


def build_norm(config: ModelConfig, width: int, *, bias: bool | None = None) -> nn.Module:
    """The normalization layer that the config names."""
    if config.norm == "rms":
        return RMSNorm(width, eps=config.eps)
    return LayerNorm(width, eps=config.eps, bias=config.bias if bias is None else bias)


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, applied to each token on its own.

    A gated unit (Shazeer 2020) projects up twice: the activation of the first half is multiplied by the second half.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated = config.activation in GATED
        self.activation = activation_function(config.activation)
        self.up = Linear(config.width, config.ffn_width * (2 if self.gated else 1), bias=config.bias)
        self.down = Linear(config.ffn_width, config.width, bias=config.bias)

    def forward(self, x_ND: Tensor) -> Tensor:
        wide_NF = self.up(x_ND)
        if self.gated:
            gate_NF, value_NF = wide_NF.chunk(2, dim=-1)
            out_ND: Tensor = self.down(self.activation(gate_NF) * value_NF)
        else:
            out_ND = self.down(self.activation(wide_NF))
        return out_ND


class Block(nn.Module):
    """Attention, then (in a decoder with an encoder) cross-attention, then the feed-forward layer, each residual.

    Pre-norm is x + f(norm(x)); post-norm, as in the 2017 Transformer and in BERT, is norm(x + f(x)).
    """

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
        already_normed = first and config.norm_first and config.embedding_norm  # a second norm would change nothing
        self.attention_norm = nn.Identity() if already_normed else build_norm(config, config.width)
        self.cross = Attention(config, cross=True) if cross else None
        self.cross_norm = build_norm(config, config.width) if cross else None
        self.feedforward = FeedForward(config)
        self.feedforward_norm = build_norm(config, config.width)
        self.dropout = Dropout(config.dropout)

    def forward(self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None = None) -> Tensor:
        return self.pre_norm(x_ND, context, cache) if self.norm_first else self.post_norm(x_ND, context, cache)

    def pre_norm(self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None) -> Tensor:
        x_ND = x_ND + self.dropout(self.attention(self.attention_norm(x_ND), context, cache))
        if self.cross is not None and self.cross_norm is not None:
            x_ND = x_ND + self.dropout(self.cross(self.cross_norm(x_ND), context, cache))
        out_ND: Tensor = x_ND + self.dropout(self.feedforward(self.feedforward_norm(x_ND)))
        return out_ND

    def post_norm(self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None) -> Tensor:
        x_ND = self.attention_norm(x_ND + self.dropout(self.attention(x_ND, context, cache)))
        if self.cross is not None and self.cross_norm is not None:
            x_ND = self.cross_norm(x_ND + self.dropout(self.cross(x_ND, context, cache)))
        out_ND: Tensor = self.feedforward_norm(x_ND + self.dropout(self.feedforward(x_ND)))
        return out_ND
