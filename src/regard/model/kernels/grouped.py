"""Attention in groups: sequences of equal length are stacked into one dense tensor, on any device, without padding.

It works as follows: tokens are reordered so that sequences of equal length are adjacent, each group is one call of
dense attention, and the results are put back into the order of the batch. For torch.compile the whole is one custom
operation, since the groups depend on the lengths.

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one, H heads,
G key-value heads, K head width, R distances. True = may attend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor

from regard.model.kernels.dense import AttentionCall, explicit_attention, fused_attention, pairwise_bias
from regard.model.kernels.layout import Layout, Mask, SequenceGroup
from regard.model.scores import AttentionScore

GroupKernel: TypeAlias = Callable[[Tensor, Tensor, Tensor, AttentionCall, SequenceGroup], Tensor]


def grouped(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """Groups of sequences of equal length, with torch's fused attention."""
    if torch.compiler.is_compiling() and call.mask.function is None:
        return grouped_op(q_NHK, k_MGK, v_MGK, call)
    return _pausing(q_NHK, k_MGK, v_MGK, call, fused_group)


def explicit(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """Groups of sequences of equal length, with explicit scores and weights."""
    return _pausing(q_NHK, k_MGK, v_MGK, call, explicit_group)


def _pausing(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall, work: GroupKernel) -> Tensor:
    """The groups are planned on the host, so a compiled graph breaks here."""
    if not torch.compiler.is_compiling():
        return in_groups(q_NHK, k_MGK, v_MGK, call, work)
    paused = torch.compiler.disable(in_groups)  # not a decorator, which would import the compiler with this module
    out_NHK: Tensor = paused(q_NHK, k_MGK, v_MGK, call, work)
    return out_NHK


def in_groups(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall, work: GroupKernel) -> Tensor:
    """Run `work` on each group of sequences of equal size, and return the results in the order of the batch."""
    layout = call.layout
    q_parts = _parts(q_NHK, layout.q_order, [len(group.rows) * group.queries for group in layout.groups])
    sizes = [len(group.rows) * group.keys for group in layout.groups]
    k_parts, v_parts = (_parts(x_MGK, layout.k_order, sizes) for x_MGK in (k_MGK, v_MGK))
    outputs = []
    for group, *parts in zip(layout.groups, q_parts, k_parts, v_parts, strict=True):
        q_BHTK, k_BGSK, v_BGSK = (part.unflatten(0, (len(group.rows), -1)).transpose(1, 2) for part in parts)
        outputs.append(work(q_BHTK, k_BGSK, v_BGSK, call, group).transpose(1, 2).flatten(0, 1))
    if layout.q_back is None:
        if not outputs:
            return torch.zeros_like(q_NHK)
        return torch.cat(outputs) if len(outputs) > 1 else outputs[0]
    outputs.append(q_NHK.new_zeros(1, *q_NHK.shape[1:]))  # the result of a query without keys
    return torch.cat(outputs).index_select(0, layout.q_back)


def _parts(x_NHK: Tensor, order: Tensor | None, sizes: list[int]) -> Sequence[Tensor]:
    """One view per group, after a copy if the groups are not in order."""
    if order is not None:
        x_NHK = x_NHK.index_select(0, order)
    parts: Sequence[Tensor] = x_NHK.split(sizes)
    return parts


def _allowed(call: AttentionCall, group: SequenceGroup, heads: int) -> Tensor | None:
    """(B or 1, H or 1, T, S) True = may attend; None where everything is allowed."""
    if call.mask.allows_all:
        return None
    row, query, key = group.positions
    if call.mask.function is None:
        return call.mask.allowed(row[:1], row[:1], query, key)
    head = torch.arange(heads, device=group.device).view(1, -1, 1, 1)
    return call.mask.allowed(row, head, query, key)


def fused_group(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: AttentionCall, group: SequenceGroup) -> Tensor:
    if call.mask == Mask(right=0) and group.queries == group.keys and call.bias_HR is None:
        return fused_attention(q_BHTK, k_BGSK, v_BGSK, call, causal=True)
    return fused_attention(q_BHTK, k_BGSK, v_BGSK, call, _allowed(call, group, q_BHTK.shape[1]), _bias(call, group))


def _bias(call: AttentionCall, group: SequenceGroup) -> Tensor | None:
    return None if call.bias_HR is None else pairwise_bias(call.bias_HR, *group.positions[1:])


def explicit_group(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: AttentionCall, group: SequenceGroup) -> Tensor:
    return explicit_attention(q_BHTK, k_BGSK, v_BGSK, call, _allowed(call, group, q_BHTK.shape[1]), _bias(call, group))


@torch.library.custom_op("regard::grouped", mutates_args=())
def _grouped_op(
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    q_bounds: Tensor,
    k_bounds: Tensor,
    bias_HR: Tensor | None,
    window: list[int],
    scale: float,
    dropout: float,
    seed: Tensor | None,
) -> Tensor:
    """`grouped` as one custom operation, so that a compiled graph need not break."""
    call = _opened(q_bounds, k_bounds, bias_HR, window, scale, dropout)
    with _seeded(seed, q_NHK.device):
        return in_groups(q_NHK, k_MGK, v_MGK, call, fused_group).clone(memory_format=torch.contiguous_format)


@_grouped_op.register_fake
def _(q_NHK: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(q_NHK, memory_format=torch.contiguous_format)


@torch.library.custom_op("regard::grouped_backward", mutates_args=())
def _grouped_backward_op(
    grad_NHK: Tensor,
    q_NHK: Tensor,
    k_MGK: Tensor,
    v_MGK: Tensor,
    q_bounds: Tensor,
    k_bounds: Tensor,
    bias_HR: Tensor | None,
    window: list[int],
    scale: float,
    dropout: float,
    seed: Tensor | None,
) -> list[Tensor]:
    """Runs the groups again with gradients: attention is a small part of the compute, but its weights much memory.

    A custom operation runs below autograd, so the gradients come from `torch.func.vjp`.
    """
    layout = _opened(q_bounds, k_bounds, None, window, scale, dropout).layout

    def run_again(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, *bias: Tensor) -> Tensor:
        call = _opened(q_bounds, k_bounds, bias[0] if bias else None, window, scale, dropout, layout)
        return in_groups(q_NHK, k_MGK, v_MGK, call, fused_group)

    inputs = [q_NHK, k_MGK, v_MGK] + ([] if bias_HR is None else [bias_HR])
    with _seeded(seed, q_NHK.device):
        back = torch.func.vjp(run_again, *inputs)[1]
    return [grad.clone(memory_format=torch.contiguous_format) for grad in back(grad_NHK)]


@_grouped_backward_op.register_fake
def _(grad_NHK: Tensor, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> list[Tensor]:
    inputs = [q, k, v] + ([rest[2]] if rest[2] is not None else [])
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs]


@contextmanager
def _seeded(seed: Tensor | None, device: torch.device) -> Iterator[None]:
    """The same dropout in forward and backward; the random state of the caller is restored."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else [], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(int(seed))
            if on_gpu:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(int(seed))
        yield


def _opened(
    q_bounds: Tensor,
    k_bounds: Tensor,
    bias_HR: Tensor | None,
    window: list[int],
    scale: float,
    dropout: float,
    layout: Layout | None = None,
) -> AttentionCall:
    left, right = (None if distance < 0 else distance for distance in window[:2])
    layout = layout or Layout(q_bounds, q_bounds if torch.equal(q_bounds, k_bounds) else k_bounds, 0, 0)
    mask, score = Mask(left, right), AttentionScore(scale)
    return AttentionCall(layout, mask, score, bias_HR=bias_HR, dropout=dropout, training=dropout > 0)


def grouped_op(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    dropout = call.active_dropout
    seed = torch.randint(2**31, ()) if dropout > 0 else None
    out_NHK: Tensor = _grouped_op(
        q_NHK,
        k_MGK,
        v_MGK,
        call.layout.q_bounds,
        call.layout.k_bounds,
        call.bias_HR,
        [-1 if distance is None else distance for distance in (call.mask.left, call.mask.right)],
        call.score.scale,
        dropout,
        seed,
    )
    return out_NHK


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6], inputs[9])
    ctx.rest = inputs[6:9]


def _grad(ctx: Any, grad_NHK: Tensor) -> tuple[Any, ...]:
    *tensors, seed = ctx.saved_tensors
    grads = _grouped_backward_op(grad_NHK, *tensors, *ctx.rest, seed)
    return (*grads[:3], None, None, grads[3] if len(grads) > 3 else None, None, None, None, None)


_grouped_op.register_autograd(_grad, setup_context=_save)
