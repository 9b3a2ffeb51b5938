"""Attention with dropout on the CPU: short sequences share tiles, which gives fewer and larger matrix products.

torch's fused attention has no dropout on the CPU; its fallback computes one small product per head and sequence. Here
it works as follows:
1. Short sequences are packed into tiles of 64 or 128 tokens, longer ones get a tile of their own (cpu_tiles.py).
2. Scores, softmax, dropout and the weighted sum of the values are computed for all tiles of one size at once.
3. A mask of -inf separates the sequences of a tile; unused positions are dropped at the end.

Shapes: N tokens, P tiles, S positions of a tile, H heads, G key-value heads, K head width. True = may attend.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.model.kernels.cpu_autograd import dropout, small_matmul
from regard.model.kernels.cpu_tiles import Packing, Tiles
from regard.model.kernels.dense import AttentionCall, pairwise_bias


def attend_packed(q_NHK: Tensor, k_NGK: Tensor, v_NGK: Tensor, call: AttentionCall) -> Tensor:
    """Self-attention with a window or causal mask at most, no mask function."""
    packing: Packing = call.layout.packing
    if not packing.tiles:
        return torch.zeros_like(q_NHK)
    heads_per_kv = q_NHK.shape[1] // k_NGK.shape[1]
    if heads_per_kv > 1:
        k_NGK, v_NGK = (x_NGK.repeat_interleave(heads_per_kv, 1) for x_NGK in (k_NGK, v_NGK))
    outputs = [_one_size(q_NHK, k_NGK, v_NGK, call, tiles) for tiles in packing.tiles]
    return torch.cat(outputs).index_select(0, packing.back)


def _one_size(q_NHK: Tensor, k_NHK: Tensor, v_NHK: Tensor, call: AttentionCall, tiles: Tiles) -> Tensor:
    count, size = tiles.token.shape

    def in_tiles(x_NHK: Tensor) -> Tensor:
        x_PSHK: Tensor = x_NHK.index_select(0, tiles.token.flatten()).unflatten(0, (count, size))
        return x_PSHK.transpose(1, 2).contiguous()

    q_PHSK, k_PHSK, v_PHSK = in_tiles(q_NHK), in_tiles(k_NHK), in_tiles(v_NHK)
    scores_PHSS = small_matmul(q_PHSK * call.score.scale, k_PHSK.transpose(2, 3))
    query, key = tiles.position.view(count, 1, size, 1), tiles.position.view(count, 1, 1, size)
    if call.bias_HR is not None:
        scores_PHSS = scores_PHSS + pairwise_bias(call.bias_HR, query, key)
    mask = tiles.apart
    if not call.mask.allows_all:
        near = call.mask.allowed(query, query, query, key) | (tiles.row < 0).view(count, 1, size, 1)
        mask = mask.masked_fill(~near, float("-inf"))
    weights_PHSS = (scores_PHSS + mask).softmax(-1)
    mixed_PHSK = small_matmul(dropout(weights_PHSS, call.active_dropout), v_PHSK)
    return mixed_PHSK.transpose(1, 2).flatten(0, 1)
