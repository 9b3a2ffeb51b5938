"""Attention with dropout on the CPU: short sequences side by side in tiles, so that few and larger products are made.

torch's fused attention has no dropout on the CPU, and what it does instead makes one small product for each head of
each sequence. Here short sequences share tiles of 64 or 128 places, longer ones have a tile of their own, its size
rounded up; a mask keeps sequences apart. The filling is inside this file: no other part of the network sees it.

Shapes: N tokens, P tiles, S places of a tile, H heads, G key-value heads, K head width. True = may attend.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.model.kernels.cpu_autograd import dropout, small_matmul
from regard.model.kernels.cpu_tiles import Packing, Tiles
from regard.model.kernels.dense import AttentionCall, pairwise_bias


def attend_packed(q_NHK: Tensor, k_NGK: Tensor, v_NGK: Tensor, call: AttentionCall) -> Tensor:
    """Queries, keys and values of the same tokens, masked by distance alone."""
    packing: Packing = call.layout.packing
    if not packing.tiles:
        return torch.zeros_like(q_NHK)
    share = q_NHK.shape[1] // k_NGK.shape[1]
    if share > 1:
        k_NGK, v_NGK = (x_NGK.repeat_interleave(share, 1) for x_NGK in (k_NGK, v_NGK))
    done = [_one_size(q_NHK, k_NGK, v_NGK, call, tiles) for tiles in packing.tiles]
    return torch.cat(done).index_select(0, packing.back)


def _one_size(q_NHK: Tensor, k_NHK: Tensor, v_NHK: Tensor, call: AttentionCall, tiles: Tiles) -> Tensor:
    count, size = tiles.token.shape

    def laid(x_NHK: Tensor) -> Tensor:
        x_PSHK: Tensor = x_NHK.index_select(0, tiles.token.flatten()).unflatten(0, (count, size))
        return x_PSHK.transpose(1, 2).contiguous()

    q_PHSK, k_PHSK, v_PHSK = laid(q_NHK), laid(k_NHK), laid(v_NHK)
    scores_PHSS = small_matmul(q_PHSK * call.score.scale, k_PHSK.transpose(2, 3))
    query, key = tiles.place.view(count, 1, size, 1), tiles.place.view(count, 1, 1, size)
    if call.bias_HR is not None:
        scores_PHSS = scores_PHSS + pairwise_bias(call.bias_HR, query, key)
    apart = tiles.apart
    if not call.mask.allows_all:
        near = call.mask.allowed(query, query, query, key) | (tiles.row < 0).view(count, 1, size, 1)
        apart = apart.masked_fill(~near, float("-inf"))
    weights_PHSS = (scores_PHSS + apart).softmax(-1)
    mixed_PHSK = small_matmul(dropout(weights_PHSS, call.active_dropout), v_PHSK)
    return mixed_PHSK.transpose(1, 2).flatten(0, 1)
