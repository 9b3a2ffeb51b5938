"""CUDA kernels on flat tokens: FlashAttention with sequence bounds, cuDNN attention, and FlexAttention.

Shapes: N queries and M keys of all sequences, H heads, G key-value heads, K head width, R distances.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.model.kernels.layout import Layout, Mask

_DETERMINISTIC: Any = torch.utils.deterministic  # its attribute is a property, which mypy does not know


def flash_attention(
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    layout: Layout,
    *,
    left: int | None,
    right: int | None,
    scale: float,
    dropout: float = 0.0,
) -> Tensor:
    """FlashAttention (Dao et al. 2022) with windows and causal masks in half precision, without waiting for the GPU.

    This is the operation that `torch.nn.attention.varlen` calls. It is called directly because the dispatch of the
    public function, a Python operation, takes longer than the kernel on small batches, and has no dropout.
    """
    options = _FlashOptions(
        max_lengths=(layout.q_max_length, layout.k_max_length),
        dropout=dropout,
        causal=left is None and right == 0,
        scale=scale,
        window=(-1 if left is None else left, -1 if right is None else right),
    )
    arguments = (q_NHK, k_MGK, v_MGK, layout.q_bounds, layout.k_bounds)
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return options.forward(*arguments)[0]
    out_NHK: Tensor = _ReproducibleFlash.apply(*arguments, options)  # type: ignore[no-untyped-call]
    return out_NHK


@dataclass(frozen=True)
class _FlashOptions:
    """The arguments of FlashAttention that are not tensors."""

    max_lengths: tuple[int, int]  # of queries and keys
    dropout: float
    causal: bool
    scale: float
    window: tuple[int, int]  # to the left and to the right; -1 for no limit

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Of queries, keys, values and the bounds of both."""
        out: tuple[Tensor, ...] = torch.ops.aten._flash_attention_forward(
            *tensors, *self.max_lengths, self.dropout, self.causal, False, **self._named()
        )
        return out

    def backward(self, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of queries, keys and values."""
        before, state = tensors[:-2], tensors[-2:]
        grads: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._flash_attention_backward(
            *before, *self.max_lengths, self.dropout, self.causal, *state, **self._named()
        )
        return grads

    def _named(self) -> dict[str, Any]:
        return {"scale": self.scale, "window_size_left": self.window[0], "window_size_right": self.window[1]}


class _ReproducibleFlash(torch.autograd.Function):
    """FlashAttention whose gradients are always the same.

    By default, the gradient of the queries is a sum that is added up in any order, so that two trainings with the same
    seed end with different weights if a sequence is longer than two blocks of keys.
    """

    @staticmethod
    def forward(ctx: Any, q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, *rest: Any) -> Tensor:
        """rest: the bounds of queries and keys, and the options."""
        q_bounds, k_bounds, options = rest
        inputs = (q_NHK, k_MGK, v_MGK)
        out_NHK, log_sums, *state, _ = options.forward(*inputs, q_bounds, k_bounds)
        ctx.save_for_backward(*inputs, out_NHK, log_sums, q_bounds, k_bounds, *state)
        ctx.options = options
        out: Tensor = out_NHK
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        with deterministic_algorithms():
            inputs = ctx.options.backward(grads[0].contiguous(), *ctx.saved_tensors)
        return *inputs, None, None, None


@contextmanager
def deterministic_algorithms() -> Iterator[None]:
    """In this block, operations of torch that have a deterministic form use it, and those that never have one fail."""
    mode, fills = torch.get_deterministic_debug_mode(), _DETERMINISTIC.fill_uninitialized_memory
    torch.set_deterministic_debug_mode("error")
    _DETERMINISTIC.fill_uninitialized_memory = False  # not needed, and takes time
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        _DETERMINISTIC.fill_uninitialized_memory = fills


def cudnn_attention(
    q_NHK: Tensor, k_NGK: Tensor, v_NGK: Tensor, rows: int, *, causal: bool, scale: float, drop: float
) -> Tensor:
    """cuDNN's fused attention for sequences of equal length, the fastest in training on Hopper and later."""
    heads_per_kv = q_NHK.shape[1] // k_NGK.shape[1]
    if heads_per_kv > 1:
        k_NGK, v_NGK = (x_NGK.repeat_interleave(heads_per_kv, 1) for x_NGK in (k_NGK, v_NGK))
    parts = [x_NHK.unflatten(0, (rows, -1)).transpose(1, 2) for x_NHK in (q_NHK, k_NGK, v_NGK)]
    attend = torch.ops.aten._scaled_dot_product_cudnn_attention
    out_BHTK: Tensor = attend(*parts, None, torch.is_grad_enabled(), drop, causal, False, scale=scale)[0]
    return out_BHTK.transpose(1, 2).flatten(0, 1)


def flex_attention(
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    layout: Layout,
    mask: Mask,
    *,
    bias_HR: Tensor | None,
    scale: float,
) -> Tensor:
    """FlexAttention (Dong et al. 2024): any mask and bias in any precision, compiled.

    The whole batch is one sequence; the mask separates the real sequences, and blocks without an allowed pair are
    skipped.
    """
    allowed, adjust = flex_rules(layout, mask, bias_HR, q_NHK.shape[0], k_MGK.shape[0])
    blocks = _block_mask(layout, mask, allowed, q_NHK.shape[1], q_NHK.shape[0], k_MGK.shape[0])
    out_1HNK: Tensor = _compiled_flex()(
        q_NHK.transpose(0, 1).unsqueeze(0),
        k_MGK.transpose(0, 1).unsqueeze(0),
        v_MGK.transpose(0, 1).unsqueeze(0),
        score_mod=adjust,
        block_mask=blocks,
        scale=scale,
        enable_gqa=q_NHK.shape[1] != k_MGK.shape[1],
    )
    return out_1HNK.squeeze(0).transpose(0, 1)


@functools.cache
def _compiled_flex() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)


@functools.cache
def _compiled_block_mask() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import create_block_mask

    return torch.compile(create_block_mask, dynamic=True)


def flex_rules(
    layout: Layout, mask: Mask, bias_HR: Tensor | None, n: int, m: int
) -> tuple[Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], Callable[..., Tensor] | None]:
    """The mask and the bias as functions of flat indices."""
    q_row, q_place = _rows_and_positions(layout.q_bounds, layout.k_bounds, n)
    k_row, k_place = _rows_and_positions(layout.k_bounds, layout.k_bounds, m)

    def allowed(_: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        row = q_row[query]
        return (row == k_row[key]) & mask.allowed(row, head, q_place[query], k_place[key])

    if bias_HR is None:
        return allowed, None
    middle = (bias_HR.shape[1] - 1) // 2

    def adjust(score: Tensor, _: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = (k_place[key] - q_place[query] + middle).clamp(0, 2 * middle)
        return score + bias_HR[head, distance]

    return allowed, adjust


def _rows_and_positions(bounds: Tensor, k_bounds: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
    """Sequence and position of each flat token; the last query has the position of the last key."""
    flat = torch.arange(tokens, device=bounds.device, dtype=bounds.dtype)
    row = torch.searchsorted(bounds, flat, right=True) - 1
    back = flat - bounds[row + 1]
    return row, back + (k_bounds[row + 1] - k_bounds[row])


def _block_mask(layout: Layout, mask: Mask, allowed: Any, heads: int, n: int, m: int) -> Any:
    """The blocks with an allowed pair; one mask for all heads, unless a mask function may depend on the head."""
    each = heads if mask.function is not None else None
    build = _compiled_block_mask()
    return build(allowed, None, each, n, m, device=layout.q_bounds.device)
