"""Attention on dense tensors: torch's fused kernel, and the explicit computation of scores and weights.

`AttentionCall` holds everything of an attention besides queries, keys and values; all kernels take it.

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one, H heads,
G key-value heads, K head width, R distances. True = may attend.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.model.kernels.layout import Layout, Mask
from regard.model.scores import AttentionScore, scores_to_weights


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One attention without its queries, keys and values: layout, mask, score, selection, bias, dropout."""

    layout: Layout
    mask: Mask = field(default_factory=Mask)
    score: AttentionScore = field(default_factory=AttentionScore)
    select: str = "soft"
    bias_HR: Tensor | None = None  # by distance key - query, R = 2 L - 1
    dropout: float = 0.0
    training: bool = False

    @property
    def active_dropout(self) -> float:
        """The dropout rate, 0 outside of training."""
        return self.dropout if self.training else 0.0

    @property
    def can_fuse(self) -> bool:
        """Whether a fused kernel can compute it: dot-product scores and soft selection."""
        return self.select == "soft" and type(self.score).score_pairs is AttentionScore.score_pairs


def pairwise_bias(bias_HR: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """(B, H, T, S) the bias of each pair of query position (B, 1, T, 1) and key position (B, 1, 1, S)."""
    middle = (bias_HR.shape[1] - 1) // 2
    distance_BTS = (key - query + middle).squeeze(1).clamp(0, bias_HR.shape[1] - 1)
    return bias_HR[:, distance_BTS].transpose(0, 1)


def fused_attention(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    call: AttentionCall,
    allowed: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """torch's scaled_dot_product_attention; mask and bias broadcast over (B, H, T, S)."""
    extra = allowed
    if bias is not None:
        extra = bias.to(q_BHTK.dtype)
        extra = extra if allowed is None else extra.masked_fill(~allowed, float("-inf"))
    return F.scaled_dot_product_attention(
        q_BHTK,
        k_BGSK,
        v_BGSK,
        attn_mask=extra,
        dropout_p=call.active_dropout,
        is_causal=causal,
        scale=call.score.scale,
        enable_gqa=q_BHTK.shape[1] != k_BGSK.shape[1],
    )


def explicit_attention(
    q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: AttentionCall, allowed: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Scores, mask, weights, weighted sum, each computed explicitly; mask and bias broadcast over (B, H, T, S)."""
    heads_per_kv = q_BHTK.shape[1] // k_BGSK.shape[1]
    scores_BHTS = call.score.score_pairs(q_BHTK, k_BGSK.repeat_interleave(heads_per_kv, 1))
    scores_BHTS = scores_BHTS if bias is None else scores_BHTS + bias
    allowed = None if allowed is None else allowed.expand_as(scores_BHTS)
    weights_BHTS = scores_to_weights(scores_BHTS, allowed, select=call.select, training=call.training)
    return F.dropout(weights_BHTS, call.active_dropout) @ v_BGSK.repeat_interleave(heads_per_kv, 1)


def sequence_weights(
    q_HTK: Tensor, k_HSK: Tensor, call: AttentionCall, *, row: int, rows: slice, heads: Tensor | None = None
) -> Tensor:
    """(H, T, S) the weights of the queries `rows` of one sequence, computed as a textbook would.

    `q_HTK` holds all queries of the sequence; `heads` are the indices of the given heads, all when None.
    """
    length_T, length_S = q_HTK.shape[1], k_HSK.shape[1]
    device = q_HTK.device
    head_H = torch.arange(q_HTK.shape[0], device=device) if heads is None else heads
    query_T1 = (torch.arange(length_T, device=device) + length_S - length_T)[rows].unsqueeze(1)
    key_1S = torch.arange(length_S, device=device).unsqueeze(0)
    scores_HTS = call.score.score_pairs(q_HTK[:, rows], k_HSK, heads)
    if call.bias_HR is not None:
        middle = (call.bias_HR.shape[1] - 1) // 2
        scores_HTS = scores_HTS + call.bias_HR[head_H][:, key_1S - query_T1 + middle]
    allowed_HTS = None
    if not call.mask.allows_all:
        allowed_HTS = call.mask.allowed(torch.tensor(row, device=device), head_H.view(-1, 1, 1), query_T1, key_1S)
        allowed_HTS = allowed_HTS.expand_as(scores_HTS)
    return scores_to_weights(scores_HTS, allowed_HTS, select=call.select, training=call.training)
