"""How well a query and a key fit: scaled dot product, dot product, cosine, bilinear, additive.

Four of the five become a plain dot product once queries or keys are prepared, so they run on every fast kernel.
The additive score (a small network on each pair) cannot, and says so through `pairs`.

Shapes: N queries, M keys, H heads, K head width, T queries and S keys of one sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class AttentionScore(nn.Module):
    """The dot product of queries and keys, times `scale`."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        """Prepare queries and keys so that their scaled dot product is the score."""
        return q_NHK, k_MHK

    def score_pairs(self, q_HTK: Tensor, k_HSK: Tensor, heads: Tensor | None = None) -> Tensor:
        """(..., H, T, S) the score of every query with every key, from prepared queries and keys.

        `heads` are the numbers of the heads given, where they are not all.
        """
        return q_HTK @ k_HSK.transpose(-2, -1) * self.scale


class CosineScore(AttentionScore):
    """The angle alone: lengths of queries and keys do not count."""

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        return F.normalize(q_NHK, dim=-1), F.normalize(k_MHK, dim=-1)


class BilinearScore(AttentionScore):
    """q W k with a learned W for each head ("general" in Luong et al. 2015)."""

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, head_width, head_width))

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        return torch.einsum("nhk,hkj->nhj", q_NHK, self.weight), k_MHK


class AdditiveScore(AttentionScore):
    """v tanh(W q + U k), a one-layer network on each pair (Bahdanau et al. 2015)."""

    def __init__(self, heads: int, head_width: int, *, kv_heads: int | None = None) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(heads, head_width, head_width))
        self.key = nn.Parameter(torch.empty(kv_heads or heads, head_width, head_width))
        self.weight = nn.Parameter(torch.empty(heads, head_width))

    def forward(self, q_NHK: Tensor, k_MHK: Tensor) -> tuple[Tensor, Tensor]:
        mixed_NHK = torch.einsum("nhk,hkj->nhj", q_NHK, self.query)
        return mixed_NHK, torch.einsum("nhk,hkj->nhj", k_MHK, self.key)

    def score_pairs(self, q_HTK: Tensor, k_HSK: Tensor, heads: Tensor | None = None) -> Tensor:
        joined_HTSK = torch.tanh(q_HTK.unsqueeze(-2) + k_HSK.unsqueeze(-3))
        weight_HK = self.weight if heads is None else self.weight[heads]
        return torch.einsum("...htsk,hk->...hts", joined_HTSK, weight_HK)


def build_score(name: str, heads: int, head_width: int, *, kv_heads: int | None = None) -> AttentionScore:
    """The score of that name for so many heads of queries and `groups` of keys (as many when None)."""
    if name == "scaled":
        return AttentionScore(head_width**-0.5)
    if name == "dot":
        return AttentionScore()
    if name == "cosine":
        return CosineScore()
    return (
        BilinearScore(heads, head_width) if name == "bilinear" else AdditiveScore(heads, head_width, kv_heads=kv_heads)
    )


def scores_to_weights(scores: Tensor, allowed: Tensor | None, *, select: str, training: bool = False) -> Tensor:
    """Scores to weights over the last axis. True in `allowed` = may attend; a query that may see nothing gets zeros.

    Soft is the softmax. Hard takes the best key alone; in training it passes the gradient of the softmax on
    (straight-through), since the arg-max has none.
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
