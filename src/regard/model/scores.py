"""Attention scores, how well a query and a key match: scaled dot product, dot product, cosine, bilinear, additive.

Four of the five become a plain dot product once queries or keys are prepared, so they run on every fast kernel.
The additive score (a small network on each pair) does not; it overrides `score_pairs`.

Shapes: N queries, M keys, H heads, K head width, T queries and S keys of one sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class AttentionScore(nn.Module):
    """The dot product of query and key, times `scale`.

    Dot (`scale` 1): q · k (Luong et al. 2015). Scaled: q · k / sqrt(K), which keeps the variance of the scores at 1
    for any head width, so that the softmax does not saturate (Vaswani et al. 2017).
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        """Prepare queries and keys so that their scaled dot product is the score."""
        return q_NHK, k_MHK

    def score_pairs(self, q_HTK: Tensor, k_HSK: Tensor, heads: Tensor | None = None) -> Tensor:
        """(..., H, T, S) the score of every query with every key, from prepared queries and keys.

        `heads` are the indices of the given heads, if not all heads are given.
        """
        return q_HTK @ k_HSK.transpose(-2, -1) * self.scale


class CosineScore(AttentionScore):
    """The cosine of the angle between query and key: both are normalized to length 1 first (Graves et al. 2014)."""

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        return F.normalize(q_NHK, dim=-1), F.normalize(k_MHK, dim=-1)


class BilinearScore(AttentionScore):
    """q W k with a learned matrix W per head ("general" in Luong et al. 2015). The query is multiplied by W first."""

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, head_width, head_width))

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        return torch.einsum("nhk,hkj->nhj", q_NHK, self.weight), k_MHK


class AdditiveScore(AttentionScore):
    """v · tanh(W q + U k), a network with one hidden layer on each pair (Bahdanau et al. 2015).

    W q and U k are computed once per token; the tanh and the product with v are computed for every pair.
    """

    def __init__(self, heads: int, head_width: int, *, kv_heads: int | None = None) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(heads, head_width, head_width))
        self.key = nn.Parameter(torch.empty(kv_heads or heads, head_width, head_width))
        self.weight = nn.Parameter(torch.empty(heads, head_width))

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        q_NHK = torch.einsum("nhk,hkj->nhj", q_NHK, self.query)
        return q_NHK, torch.einsum("nhk,hkj->nhj", k_MHK, self.key)

    def score_pairs(self, q_HTK: Tensor, k_HSK: Tensor, heads: Tensor | None = None) -> Tensor:
        hidden_HTSK = torch.tanh(q_HTK.unsqueeze(-2) + k_HSK.unsqueeze(-3))
        weight_HK = self.weight if heads is None else self.weight[heads]
        return torch.einsum("...htsk,hk->...hts", hidden_HTSK, weight_HK)


def build_score(name: str, heads: int, head_width: int, *, kv_heads: int | None = None) -> AttentionScore:
    """The score of that name, for `heads` query heads and `kv_heads` key heads (as many when None)."""
    if name == "scaled":
        return AttentionScore(head_width**-0.5)
    if name == "dot":
        return AttentionScore()
    if name == "cosine":
        return CosineScore()
    if name == "bilinear":
        return BilinearScore(heads, head_width)
    return AdditiveScore(heads, head_width, kv_heads=kv_heads)


def scores_to_weights(scores: Tensor, allowed: Tensor | None, *, select: str, training: bool = False) -> Tensor:
    """Attention weights from scores, over the last axis. True in `allowed` = may attend.

    Soft selection is the softmax. Hard selection puts all weight on the key with the highest score (Xu et al. 2015);
    since the arg-max has no gradient, training uses the gradient of the softmax instead (straight-through, Bengio et
    al. 2013). A query that may attend to nothing gets zeros.
    """
    if allowed is not None:
        scores = scores.masked_fill(~allowed, float("-inf"))
    exact = torch.promote_types(scores.dtype, torch.float32)
    weights = torch.softmax(scores, dim=-1, dtype=exact).to(scores.dtype)
    if allowed is not None:
        weights = weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    if select == "soft" or scores.shape[-1] == 0:
        return weights
    best = torch.zeros_like(weights).scatter_(-1, weights.argmax(-1, keepdim=True), 1.0)
    best = best * (weights.amax(-1, keepdim=True) > 0)
    return best + (weights - weights.detach()) if training else best
