"""Attention with dropout on the CPU: short sequences share tiles, which gives fewer and larger matrix products.

torch's fused attention has no dropout on the CPU; its fallback computes one small product per head and sequence. Here
it works as follows:
1. Short sequences are packed into tiles of 64 or 128 tokens, longer ones get a tile of their own (cpu_tiles.py).
2. Scores, softmax, dropout and the weighted sum of the values are computed for the tiles of one size, in chunks of
   tiles and heads whose scores fit into the cache.
3. A mask of -inf separates the sequences of a tile; unused positions are dropped at the end.

Shapes: N tokens, P tiles, S positions of a tile, H heads, G key-value heads, K head width. True = may attend.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.model.kernels.cpu_autograd import (
    RANDOM_LEVELS,
    dropout,
    random_int16,
    random_limit,
    small_matmul,
    small_product,
    use_cpu_kernel,
)
from regard.model.kernels.cpu_tiles import Packing, Tiles
from regard.model.kernels.dense import AttentionCall, pairwise_bias

CHUNK = 1 << 20  # scores per thread that are computed at once: 4 MB


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
    q_PHSK = q_PHSK * call.score.scale
    query, key = tiles.position.view(count, 1, size, 1), tiles.position.view(count, 1, 1, size)
    mask_P1SS = tiles.apart
    if not call.mask.allows_all:
        near = call.mask.allowed(query, query, query, key) | (tiles.row < 0).view(count, 1, size, 1)
        mask_P1SS = mask_P1SS.masked_fill(~near, float("-inf"))
    limit = random_limit(call.active_dropout)
    if call.bias_HR is None and limit is not None and use_cpu_kernel(q_PHSK):
        mixed_PHSK: Tensor = _InChunks.apply(q_PHSK, k_PHSK, v_PHSK, mask_P1SS, limit)  # type: ignore[no-untyped-call]
    else:
        bias = None if call.bias_HR is None else pairwise_bias(call.bias_HR, query, key)
        mixed_PHSK = all_at_once(q_PHSK, k_PHSK, v_PHSK, mask_P1SS, call.active_dropout, bias)
    return mixed_PHSK.transpose(1, 2).flatten(0, 1)


def all_at_once(
    q_PHSK: Tensor, k_PHSK: Tensor, v_PHSK: Tensor, mask_P1SS: Tensor, rate: float, bias: Tensor | None = None
) -> Tensor:
    """Attention of all tiles, the scores of all heads at once."""
    scores_PHSS = small_matmul(q_PHSK, k_PHSK.transpose(2, 3))
    if bias is not None:
        scores_PHSS = scores_PHSS + bias
    weights_PHSS = (scores_PHSS + mask_P1SS).softmax(-1)
    return small_matmul(dropout(weights_PHSS, rate), v_PHSK)


class _InChunks(torch.autograd.Function):
    """The same with the same random numbers, a few tiles or heads at a time.

    What is read from memory and written there once are the weights, with and without dropout, which the backward pass
    needs. Its sum of products of weights and their gradients is that of the outputs and theirs, which is much smaller.
    """

    @staticmethod
    def forward(context: Any, q_PHSK: Tensor, k_PHSK: Tensor, v_PHSK: Tensor, mask_P1SS: Tensor, limit: int) -> Tensor:
        weights_PHSS = q_PHSK.new_empty(*q_PHSK.shape[:3], q_PHSK.shape[2])
        dropped_PHSS, mixed_PHSK = torch.empty_like(weights_PHSS), torch.empty_like(v_PHSK)
        chunks = _chunks(weights_PHSS)
        memory = torch.empty(weights_PHSS[chunks[0]].numel() // 4 + 1, dtype=torch.int64)
        for chunk in chunks:
            weights, dropped = weights_PHSS[chunk], dropped_PHSS[chunk]
            small_product(q_PHSK[chunk], k_PHSK[chunk].mT, out=weights)
            weights += mask_P1SS[chunk[0]]
            torch.softmax(weights, -1, out=weights)
            torch.ge(random_int16(weights.shape, memory), limit - RANDOM_LEVELS // 2, out=dropped)
            dropped *= weights
            small_product(dropped, v_PHSK[chunk], out=mixed_PHSK[chunk])
        context.up = RANDOM_LEVELS / (RANDOM_LEVELS - limit)
        mixed_PHSK *= context.up
        context.save_for_backward(q_PHSK, k_PHSK, v_PHSK, weights_PHSS, dropped_PHSS, mixed_PHSK)
        return mixed_PHSK

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q_PHSK, k_PHSK, v_PHSK, weights_PHSS, dropped_PHSS, mixed_PHSK = context.saved_tensors
        sums_PHS1 = (grads[0] * mixed_PHSK).sum(-1, keepdim=True)
        grad_PHSK = grads[0] * context.up
        q_grad, k_grad, v_grad = torch.empty_like(q_PHSK), torch.empty_like(k_PHSK), torch.empty_like(v_PHSK)
        chunks = _chunks(weights_PHSS)
        memory = torch.empty(weights_PHSS[chunks[0]].numel())
        for chunk in chunks:
            weights, dropped, grad = weights_PHSS[chunk], dropped_PHSS[chunk], grad_PHSK[chunk]
            small_product(dropped.mT, grad, out=v_grad[chunk])
            scores_grad = small_product(grad, v_PHSK[chunk].mT, out=memory[: weights.numel()].view(weights.shape))
            scores_grad *= dropped
            scores_grad.addcmul_(weights, sums_PHS1[chunk], value=-1)
            small_product(scores_grad, k_PHSK[chunk], out=q_grad[chunk])
            small_product(scores_grad.mT, q_PHSK[chunk], out=k_grad[chunk])
        return q_grad, k_grad, v_grad, None, None


def _chunks(weights_PHSS: Tensor) -> list[tuple[slice, slice]]:
    """Parts of the tiles with all heads, or of the heads of one tile where these are too large; the largest first."""
    tiles, heads, size, _ = weights_PHSS.shape
    scores = CHUNK * torch.get_num_threads()
    tile_step = max(1, scores // (heads * size * size))
    head_step = min(heads, max(1, scores // (size * size)))
    return [
        (slice(tile, tile + tile_step), slice(head, head + head_step))
        for tile in range(0, tiles, tile_step)
        for head in range(0, heads, head_step)
    ]
