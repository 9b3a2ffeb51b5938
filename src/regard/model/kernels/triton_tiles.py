"""Attention in small tiles on a GPU, for reading only: no gradient, windows and causal masks, any precision.

FlashAttention takes 128 queries of a sequence at a time, so a text of 24 tokens leaves four fifths of its tile empty.
This kernel (the same algorithm: Dao et al. 2022) takes 16 at a time where texts are short, and 64 otherwise.
It is the only room that imports Triton, and is imported when it is first used.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.model.kernels.layout import Layout

SHORT = 48  # tokens of the mean sequence below which the small tiles are faster
FAR = 1 << 29  # a reach that no sequence has


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
    SCALE: tl.constexpr,  # of the scores, to powers of two
    WIDTH: tl.constexpr,
    SHARE: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    EXACT: tl.constexpr,  # how products of fp32 are formed
):
    """One tile of queries of one head of one sequence; weights are rescaled as greater scores are met."""
    tile, head, row = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q_start = tl.load(q_bounds + row)
    queries = tl.load(q_bounds + row + 1) - q_start
    if tile * QUERIES < queries:
        k_start = tl.load(k_bounds + row)
        keys = tl.load(k_bounds + row + 1) - k_start
        t = tile * QUERIES + tl.arange(0, QUERIES)
        d = tl.arange(0, WIDTH)
        place = t + (keys - queries)
        real = t[:, None] < queries
        q = tl.load(q_ptr + (q_start + t)[:, None] * q_step + head * WIDTH + d[None, :], mask=real, other=0.0)
        most = tl.full([QUERIES], -1e30, tl.float32)
        total = tl.zeros([QUERIES], tl.float32)
        mixed = tl.zeros([QUERIES, WIDTH], tl.float32)
        first = tl.maximum(tile * QUERIES + keys - queries - left, 0) // KEYS * KEYS
        last = tl.minimum(tile * QUERIES + QUERIES + keys - queries + right, keys)
        for start in range(first, last, KEYS):
            s = start + tl.arange(0, KEYS)
            k = tl.load(
                k_ptr + (k_start + s)[None, :] * k_step + (head // SHARE) * WIDTH + d[:, None],
                mask=s[None, :] < keys,
                other=0.0,
            )
            away = s[None, :] - place[:, None]
            may = (s[None, :] < keys) & (away >= -left) & (away <= right)
            score = tl.where(may, tl.dot(q, k, input_precision=EXACT) * SCALE, -1e30)
            greater = tl.maximum(most, tl.max(score, 1))
            weight = tl.where(may, tl.exp2(score - greater[:, None]), 0.0)
            shrink = tl.exp2(most - greater)
            v = tl.load(
                v_ptr + (k_start + s)[:, None] * v_step + (head // SHARE) * WIDTH + d[None, :],
                mask=s[:, None] < keys,
                other=0.0,
            )
            mixed = tl.dot(weight.to(v.dtype), v, mixed * shrink[:, None], input_precision=EXACT)
            total = total * shrink + tl.sum(weight, 1)
            most = greater
        mixed = mixed / tl.where(total == 0.0, 1.0, total)[:, None]  # zeros where nothing may be seen
        place_out = out_ptr + (q_start + t)[:, None] * out_step + head * WIDTH + d[None, :]
        tl.store(place_out, mixed.to(out_ptr.dtype.element_ty), mask=real)


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
    """(N, H, K) on flat tokens, without a host synchronisation."""
    reach = (FAR if left is None else left, FAR if right is None else right)
    work = _opaque if torch.compiler.is_compiling() else _launch
    out_NHK: Tensor = work(q_NHK, k_MGK, v_MGK, layout.q_bounds, layout.k_bounds, layout.q_max_length, *reach, scale)
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
    whole = q_NHK.dtype == torch.float32
    short = q_NHK.shape[0] < SHORT * rows
    size = 16 if short else 32 if whole else 64
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
            EXACT="ieee" if whole else "tf32",
            num_warps=1 if short else 4,
        )
    return out_NHK


# One operation to the compiler, so that the kernel is launched with the same types of arguments as without it.
_opaque = torch.library.custom_op("regard::tiles", _launch, mutates_args=())


@_opaque.register_fake
def _(q_NHK: Tensor, *_: Any) -> Tensor:
    return torch.empty(q_NHK.shape, dtype=q_NHK.dtype, device=q_NHK.device)


def _side_by_side(x_NHK: Tensor) -> Tensor:
    """Heads of a token one after the other; tokens may lie apart, as they do in a part of a larger product."""
    good = x_NHK.stride(1) == x_NHK.shape[2] and x_NHK.stride(2) == 1
    return x_NHK if good else x_NHK.contiguous()
