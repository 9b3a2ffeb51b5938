"""Multi-head attention, self and cross, on flat tokens (Vaswani et al. 2017).

Every token is projected to a query, a key and a value per head. The weight of a key for a query is the softmax of
their score; the output of a head is the weighted mean of the values. In cross-attention the keys and values are those
of the encoder's tokens, the memory. With fewer key-value heads than query heads (Ainslie et al. 2023), several query
heads share a key and a value.

Shapes: N query tokens, M key tokens, D width, H heads, G key-value heads, K head width, R distances.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from regard.config import ModelConfig
from regard.model.cache import Cache, LayerCache
from regard.model.hooks import HookPoint
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Layout, Mask, MaskFunction
from regard.model.linear import Linear
from regard.model.positions import rotate
from regard.model.scores import build_score

RotaryTables = tuple[Tensor, Tensor]  # cosines and sines of the positions


@dataclass(frozen=True, eq=False)
class ForwardContext:
    """What is the same for every layer of a stack during one forward pass."""

    layout: Layout
    rotary: RotaryTables | None = None
    local_rotary: RotaryTables | None = None  # of local layers, where their base differs
    bias_HR: Tensor | None = None  # added to the scores, by distance
    mask: MaskFunction | None = None
    memory_MD: Tensor | None = None  # hidden states of the encoder
    memory_layout: Layout | None = None
    cache: Cache | None = None


class AttentionKernel(nn.Module):
    """The attention kernel as a module, so that its inputs and outputs can be hooked by name."""

    kernel = "auto"  # the name of a kernel, for batches for which another one than the fastest is to be used

    def forward(self, q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
        return attend(q_NHK, k_MGK, v_MGK, call, kernel=self.kernel if call.can_fuse else "auto")


class Attention(nn.Module):
    """Projections to queries, keys and values, the attention kernel, and the output projection."""

    def __init__(self, config: ModelConfig, *, causal: bool = False, local: bool = False, cross: bool = False) -> None:
        super().__init__()
        heads = config.attention.heads
        kv_heads = config.kv_heads
        width = config.head_width
        self.head_counts = (heads, kv_heads, kv_heads)
        self.head_width = width
        self.cross = cross
        self.local = local
        self.window = config.attention.window if local else None
        self.right = 0 if causal else self.window
        self.select = config.attention.select
        self.dropout = config.attention.dropout
        is_rotary = config.positions.kind == "rotary"
        is_product = config.attention.score in ("scaled", "dot", "bilinear")
        self.key_bias_cancels = is_product and (cross or not is_rotary)
        if cross:
            self.query = Linear(config.width, heads * width, bias=config.bias)
            self.memory = Linear(config.width, 2 * kv_heads * width, bias=config.bias)
        else:
            self.qkv = Linear(config.width, (heads + 2 * kv_heads) * width, bias=config.bias)
        self.score = build_score(config.attention.score, heads, width, kv_heads=kv_heads)
        self.q = HookPoint()
        self.k = HookPoint()
        self.v = HookPoint()
        self.mix = AttentionKernel()
        self.out = Linear(heads * width, config.width, bias=config.bias)

    def forward(self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None = None) -> Tensor:
        out_ND: Tensor = self.out(self.mix_heads(x_ND, context, cache))
        return out_ND

    def mix_heads(self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None = None) -> Tensor:
        """(N, H * K) the outputs of all heads side by side, before the output projection."""
        if self.cross:
            q_NHK, k_MGK, v_MGK = self.project_cross(x_ND, context, cache)
        else:
            q_NHK, k_MGK, v_MGK = self.project_self(x_ND, context, cache)
        mixed_NHK: Tensor = self.mix(q_NHK, k_MGK, v_MGK, self.call(context))
        return mixed_NHK.flatten(1)

    def project_self(
        self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the same tokens; with a cache also the keys and values of earlier steps."""
        parts = self.qkv(x_ND).unflatten(1, (-1, self.head_width)).split(self.head_counts, dim=1)
        q_NHK, k_NGK = self.score(*self.apply_rotary(parts[0], parts[1], context))
        q_NHK, k_NGK, v_NGK = self.q(q_NHK), self.k(k_NGK), self.v(parts[2])
        if cache is None or context.cache is None:
            return q_NHK, k_NGK, v_NGK
        return q_NHK, *cache.extend(k_NGK, v_NGK, context.cache)

    def project_cross(
        self, x_ND: Tensor, context: ForwardContext, cache: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of these tokens, keys and values of the memory; with a cache the latter are computed once."""
        q_NHK = self.query(x_ND).unflatten(1, (-1, self.head_width))
        if cache is not None and cache.memory is not None:
            k_MGK, v_MGK = cache.memory_keys_values(context.cache)
            q_NHK, _ = self.score(q_NHK, k_MGK[:0])
        else:
            both = self.memory(context.memory_MD).unflatten(1, (-1, self.head_width))
            k_MGK, v_MGK = both.split(self.head_counts[1:], dim=1)
            q_NHK, k_MGK = self.score(q_NHK, k_MGK)
            if cache is not None:
                cache.memory = (k_MGK, v_MGK)
        return self.q(q_NHK), self.k(k_MGK), self.v(v_MGK)

    def redundant_key_bias(self) -> tuple[nn.Parameter, slice] | None:
        """The bias of the keys, where it only shifts all scores of a query equally, which the softmax ignores."""
        bias = (self.memory if self.cross else self.qkv).bias
        heads, kv_heads, _ = self.head_counts
        if bias is None or not self.key_bias_cancels:
            return None
        start = 0 if self.cross else heads * self.head_width
        return bias, slice(start, start + kv_heads * self.head_width)

    def apply_rotary(self, q_NHK: Tensor, k_NGK: Tensor, context: ForwardContext) -> tuple[Tensor, Tensor]:
        """Queries and keys rotated by their positions, if the positions are rotary."""
        use_local = self.local and context.local_rotary is not None
        rotary = context.local_rotary if use_local else context.rotary
        if rotary is None:
            return q_NHK, k_NGK
        return rotate(q_NHK, rotary), rotate(k_NGK, rotary)

    def call(self, context: ForwardContext) -> AttentionCall:
        """Everything that the kernel needs besides queries, keys and values."""
        if self.cross:
            assert context.memory_layout is not None
            layout, mask, bias_HR = context.memory_layout, Mask(), None
        else:
            layout, mask, bias_HR = context.layout, Mask(self.window, self.right, context.mask), context.bias_HR
        return AttentionCall(layout, mask, self.score, self.select, bias_HR, self.dropout, self.training)
