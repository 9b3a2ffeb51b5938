"""Multi-head attention, self and cross, on flat tokens.

Shapes: N tokens that look, M tokens looked at, D width, H heads, G key-value heads, K head width, R distances.
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

RotaryTables = tuple[Tensor, Tensor]  # cosines and sines of the places


@dataclass(frozen=True, eq=False)
class ForwardContext:
    """What is the same for every layer of a stack during one pass."""

    layout: Layout
    rotary: RotaryTables | None = None
    local_rotary: RotaryTables | None = None
    bias_HR: Tensor | None = None
    mask: MaskFunction | None = None
    memory_MD: Tensor | None = None
    memory_layout: Layout | None = None
    cache: Cache | None = None


class AttentionKernel(nn.Module):
    """The kernel as a module, so that what goes in and comes out has a name."""

    def forward(self, q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
        return attend(q_NHK, k_MGK, v_MGK, call)


def chosen(x_ND: Tensor, at: Tensor | None) -> Tensor:
    """The rows at these places; all of them where none are named."""
    return x_ND if at is None else x_ND.index_select(0, at)


class Attention(nn.Module):
    """Queries ask, keys answer, values are brought back."""

    def __init__(self, config: ModelConfig, *, causal: bool = False, local: bool = False, cross: bool = False) -> None:
        super().__init__()
        heads, groups, width = config.attention.heads, config.kv_heads, config.head_width
        self.head_counts = (heads, groups, groups)
        self.head_width, self.cross, self.local = width, cross, local
        self.window = config.attention.window if local else None
        self.right = 0 if causal else self.window
        self.select, self.dropout = config.attention.select, config.attention.dropout
        turned = config.positions.kind == "rotary"
        self.key_bias_cancels = config.attention.score in ("scaled", "dot", "bilinear") and (cross or not turned)
        if cross:
            self.query = Linear(config.width, heads * width, bias=config.bias)
            self.memory = Linear(config.width, 2 * groups * width, bias=config.bias)
        else:
            self.qkv = Linear(config.width, (heads + 2 * groups) * width, bias=config.bias)
        self.score = build_score(config.attention.score, heads, width, kv_heads=groups)
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.mix = AttentionKernel()
        self.out = Linear(heads * width, config.width, bias=config.bias)

    def forward(
        self, x_ND: Tensor, flow: ForwardContext, store: LayerCache | None = None, at: Tensor | None = None
    ) -> Tensor:
        """What each token is brought, or only those `at` some places; all are looked at."""
        if self.cross:
            q_NHK, k_MGK, v_MGK = self.project_cross(x_ND, flow, store)
        else:
            q_NHK, k_MGK, v_MGK = self.project_self(x_ND, flow, store)
        mixed_NHK = self.mix(q_NHK, k_MGK, v_MGK, self.call(flow))
        out_ND: Tensor = self.out(chosen(mixed_NHK.flatten(1), at))
        return out_ND

    def project_self(
        self, x_ND: Tensor, flow: ForwardContext, store: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of the same tokens, with those of earlier steps where they are kept."""
        parts = self.qkv(x_ND).unflatten(1, (-1, self.head_width)).split(self.head_counts, dim=1)
        q_NHK, k_NGK = self.score(*self.apply_rotary(parts[0], parts[1], flow))
        q_NHK, k_NGK, v_NGK = self.q(q_NHK), self.k(k_NGK), self.v(parts[2])
        if store is None or flow.cache is None:
            return q_NHK, k_NGK, v_NGK
        return q_NHK, *store.extend(k_NGK, v_NGK, flow.cache)

    def project_cross(
        self, x_ND: Tensor, flow: ForwardContext, store: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of these tokens, keys and values of the memory (computed once where they can be kept)."""
        q_NHK = self.query(x_ND).unflatten(1, (-1, self.head_width))
        if store is not None and store.memory is not None:
            k_MGK, v_MGK = store.memory_keys_values(flow.cache)
            q_NHK, _ = self.score(q_NHK, k_MGK[:0])
        else:
            both = self.memory(flow.memory_MD).unflatten(1, (-1, self.head_width))
            k_MGK, v_MGK = both.split(self.head_counts[1:], dim=1)
            q_NHK, k_MGK = self.score(q_NHK, k_MGK)
            if store is not None:
                store.memory = (k_MGK, v_MGK)
        return self.q(q_NHK), self.k(k_MGK), self.v(v_MGK)

    def redundant_key_bias(self) -> tuple[nn.Parameter, slice] | None:
        """The bias that is added to keys, where nothing feels it: it moves all scores of a query alike."""
        bias, (heads, groups, _) = (self.memory if self.cross else self.qkv).bias, self.head_counts
        if bias is None or not self.key_bias_cancels:
            return None
        start = 0 if self.cross else heads * self.head_width
        return bias, slice(start, start + groups * self.head_width)

    def apply_rotary(self, q_NHK: Tensor, k_NGK: Tensor, flow: ForwardContext) -> tuple[Tensor, Tensor]:
        """Rotated by their places, where positions are rotary."""
        turn = flow.local_rotary if self.local and flow.local_rotary is not None else flow.rotary
        return (q_NHK, k_NGK) if turn is None else (rotate(q_NHK, turn), rotate(k_NGK, turn))

    def call(self, flow: ForwardContext) -> AttentionCall:
        rest = (self.score, self.select, None if self.cross else flow.bias_HR, self.dropout, self.training)
        if not self.cross:
            return AttentionCall(flow.layout, Mask(self.window, self.right, flow.mask), *rest)
        assert flow.memory_layout is not None
        return AttentionCall(flow.memory_layout, Mask(), *rest)
