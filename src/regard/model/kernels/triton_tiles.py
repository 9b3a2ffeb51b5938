"""FlashAttention in small tiles (Triton), for inference on a GPU: windows and causal masks, any precision.

FlashAttention kernels process 128 queries of a sequence at a time, so a text of 24 tokens leaves four fifths of its
tile empty. This kernel (same algorithm, Dao et al. 2022) processes 16 queries at a time for short texts, else 64:
1. One program handles one tile of queries of one head and one sequence.
2. It goes over the keys tile by tile and keeps a running maximum and sum of the softmax; earlier results are rescaled
   when the maximum grows, so that the scores are never stored.
This is the only module that imports Triton; it is imported when first used.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.model.kernels.layout import Layout

SHORT_LENGTH = 48  # mean length below which the small tiles are faster
UNLIMITED = 1 << 29  # a distance that no sequence has


@triton.jit
def _tile(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    q_bounds,
    k_bounds,
    q_step,
    k_step,
    v_step,
    out_step,
    left,
    right,
    SCALE: tl.constexpr,  # of the scores, for exp2
    WIDTH: tl.constexpr,
    SHARE: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    EXACT: tl.constexpr,  # precision of fp32 products
):
    """One tile of queries of one head of one sequence, with an online softmax."""
    tile, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q_start = tl.load(q_bounds + row)
    queries = tl.load(q_bounds + row + 1) - q_start
    if tile * QUERIES < queries:
        k_start = tl.load(k_bounds + row)
        keys = tl.load(k_bounds + row + 1) - k_start
        t = tile * QUERIES + tl.arange(0, QUERIES)
        d = tl.arange(0, WIDTH)
        place = t + (keys - queries)
        valid = t[:, None] < queries
        q = tl.load(q_ptr + (q_start + t)[:, None] * q_step + head * WIDTH + d[None, :], mask=valid, other=0.0)
        running_max = tl.full([QUERIES], -1e30, tl.float32)
        running_sum = tl.zeros([QUERIES], tl.float32)
        output = tl.zeros([QUERIES, WIDTH], tl.float32)
        first = tl.maximum(tile * QUERIES + keys - queries - left, 0) // KEYS * KEYS
        last = tl.minimum(tile * QUERIES + QUERIES + keys - queries + right, keys)
        for start in range(first, last, KEYS):
            s = start + tl.arange(0, KEYS)
            k = tl.load(
                k_ptr + (k_start + s)[None, :] * k_step + (head // SHARE) * WIDTH + d[:, None],
                mask=s[None, :] < keys,
                other=0.0,
            )
            distance = s[None, :] - place[:, None]
            allowed = (s[None, :] < keys) & (distance >= -left) & (distance <= right)
            score = tl.where(allowed, tl.dot(q, k, input_precision=EXACT) * SCALE, -1e30)
            new_max = tl.maximum(running_max, tl.max(score, 1))
            weight = tl.where(allowed, tl.exp2(score - new_max[:, None]), 0.0)
            rescale = tl.exp2(running_max - new_max)
            v = tl.load(
                v_ptr + (k_start + s)[:, None] * v_step + (head // SHARE) * WIDTH + d[None, :],
                mask=s[:, None] < keys,
                other=0.0,
            )
            output = tl.dot(weight.to(v.dtype), v, output * rescale[:, None], input_precision=EXACT)
            running_sum = running_sum * rescale + tl.sum(weight, 1)
            running_max = new_max
        output = output / tl.where(running_sum == 0.0, 1.0, running_sum)[:, None]  # zeros where no key is allowed
        place_out = out_ptr + (q_start + t)[:, None] * out_step + head * WIDTH + d[None, :]
        tl.store(place_out, output.to(out_ptr.dtype.element_ty), mask=valid)


def attend_tiles(
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    layout: Layout,
    *,
    left: int | None,
    right: int | None,
    scale: float,
) -> Tensor:
    """(N, H, K) attention on flat tokens, without waiting for the GPU."""
    window = (UNLIMITED if left is None else left, UNLIMITED if right is None else right)
    work = _opaque if torch.compiler.is_compiling() else _launch
    out_NHK: Tensor = work(q_NHK, k_MGK, v_MGK, layout.q_bounds, layout.k_bounds, layout.q_max_length, *window, scale)
    return out_NHK


def _launch(
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    q_bounds: Tensor,
    k_bounds: Tensor,
    q_longest: int,
    left: int,
    right: int,
    scale: float,
) -> Tensor:
    q_NHK, k_MGK, v_MGK = (_side_by_side(x) for x in (q_NHK, k_MGK, v_MGK))
    out_NHK = torch.empty(q_NHK.shape, dtype=q_NHK.dtype, device=q_NHK.device)
    heads, rows = q_NHK.shape[1], q_bounds.shape[0] - 1
    is_fp32 = q_NHK.dtype == torch.float32
    short = q_NHK.shape[0] < SHORT_LENGTH * rows
    long_size = 32 if is_fp32 else 64
    size = 16 if short else long_size
    grid = (triton.cdiv(max(q_longest, 1), size), heads, max(rows, 1))
    if q_NHK.numel():
        _tile[grid](
            q_NHK,
            k_MGK,
            v_MGK,
            out_NHK,
            q_bounds,
            k_bounds,
            q_NHK.stride(0),
            k_MGK.stride(0),
            v_MGK.stride(0),
            out_NHK.stride(0),
            left,
            right,
            SCALE=scale / math.log(2),
            WIDTH=q_NHK.shape[2],
            SHARE=heads // k_MGK.shape[1],
            QUERIES=size,
            KEYS=size,
            EXACT="ieee" if is_fp32 else "tf32",
            num_warps=1 if short else 4,
        )
    return out_NHK


# One custom operation for torch.compile, so that the kernel is launched with the same argument types as without it.
_opaque = torch.library.custom_op("regard::tiles", _launch, mutates_args=())


@_opaque.register_fake
def _(q_NHK: Tensor, *_: Any) -> Tensor:
    return torch.empty(q_NHK.shape, dtype=q_NHK.dtype, device=q_NHK.device)


def _side_by_side(x_NHK: Tensor) -> Tensor:
    """A tensor whose heads are contiguous within a token; tokens may have gaps, as in a slice of a larger product."""
    is_contiguous = x_NHK.stride(1) == x_NHK.shape[2] and x_NHK.stride(2) == 1
    return x_NHK if is_contiguous else x_NHK.contiguous()
