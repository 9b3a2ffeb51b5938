"""Attention over ragged batches, behind one call: `attend`.

| kernel      | where     | for                                                                             |
|-------------|-----------|---------------------------------------------------------------------------------|
| `reference` | anywhere  | everything, one sequence after the other, as a textbook would write it; slow     |
| `grouped`   | anywhere  | sequences of (nearly) equal length together in `scaled_dot_product_attention`    |
| `explicit`  | anywhere  | what no fused kernel can do: additive scores and hard selection, also grouped    |
| `varlen`    | CUDA      | half precision, windows and causal masks: FlashAttention on the flat tokens      |
| `flex`      | CUDA      | a bias, a user's own mask, or fp32: compiled FlexAttention on the flat tokens    |
| `slots`     | anywhere  | one new token a sequence against the keys kept in a cache                        |

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one, H heads,
G key-value heads, K head width, R distances. True = may attend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.device import has_flash, has_varlen
from regard.errors import InputError, did_you_mean
from regard.model import flat
from regard.model.layout import Group, Layout, Mask, Slots
from regard.model.scores import Score, choose


@dataclass(frozen=True, eq=False)
class Call:
    """Everything of one attention but the tensors: who meets whom, how scores are made and used."""

    layout: Layout
    mask: Mask = field(default_factory=Mask)
    score: Score = field(default_factory=Score)
    select: str = "soft"
    bias_HR: Tensor | None = None  # by distance key - query, R = 2 L - 1
    dropout: float = 0.0
    training: bool = False

    @property
    def fused(self) -> bool:
        """Whether a fused kernel can do it: scores are dot products and the selection is soft."""
        return self.select == "soft" and type(self.score).pairs is Score.pairs


Work: TypeAlias = Callable[[Tensor, Tensor, Tensor, Call, Group], Tensor]


def attend(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call, *, kernel: str = "auto") -> Tensor:
    """(N, H, K) for each query the weighted mean of the values it may see; zeros where it may see none."""
    if kernel == "auto":
        kernel = pick_kernel(q_NHK, call)
    if kernel not in KERNELS:
        raise InputError(f'attention kernel "{kernel}" is not known.{did_you_mean(kernel, KERNELS)}')
    return KERNELS[kernel](q_NHK, k_MGK, v_MGK, call)


def pick_kernel(q_NHK: Tensor, call: Call) -> str:
    """The fastest kernel that can do the call on this hardware."""
    if isinstance(call.layout, Slots):
        return "slots"
    if not call.fused:
        return "explicit"
    if q_NHK.device.type != "cuda":
        return "grouped"
    width = q_NHK.shape[-1]
    half = q_NHK.dtype in (torch.bfloat16, torch.float16)
    plain = call.bias_HR is None and call.mask.function is None
    if half and plain and width % 8 == 0 and width <= 256 and has_flash() and has_varlen():
        return "varlen"
    return "flex" if width >= 16 and call.dropout == 0.0 else "grouped"


def bias_between(bias_HR: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """(B, H, T, S) the bias of each pair of places (B, 1, T, 1) and (B, 1, 1, S)."""
    middle = (bias_HR.shape[1] - 1) // 2
    distance_BTS = (key - query + middle).squeeze(1).clamp(0, bias_HR.shape[1] - 1)
    return bias_HR[:, distance_BTS].transpose(0, 1)


def explain(
    q_HTK: Tensor, k_HSK: Tensor, call: Call, *, row: int, rows: slice, heads: Tensor | None = None
) -> Tensor:
    """(H, T, S) the weights of the queries `rows` of one sequence, computed the obvious way.

    `q_HTK` holds all queries of the sequence; `heads` are the numbers of the heads given, all of them when None.
    """
    length_T, length_S = q_HTK.shape[1], k_HSK.shape[1]
    device = q_HTK.device
    head_H = torch.arange(q_HTK.shape[0], device=device) if heads is None else heads
    query_T1 = (torch.arange(length_T, device=device) + length_S - length_T)[rows].unsqueeze(1)
    key_1S = torch.arange(length_S, device=device).unsqueeze(0)
    scores_HTS = call.score.pairs(q_HTK[:, rows], k_HSK, heads)
    if call.bias_HR is not None:
        middle = (call.bias_HR.shape[1] - 1) // 2
        scores_HTS = scores_HTS + call.bias_HR[head_H][:, key_1S - query_T1 + middle]
    allowed_HTS = None
    if not call.mask.free:
        allowed_HTS = call.mask.allowed(torch.tensor(row, device=device), head_H.view(-1, 1, 1), query_T1, key_1S)
        allowed_HTS = allowed_HTS.expand_as(scores_HTS)
    return choose(scores_HTS, allowed_HTS, select=call.select, training=call.training)


def reference(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """One sequence after the other: score, mask, softmax, mix."""
    share = q_NHK.shape[1] // k_MGK.shape[1]
    parts = []
    for row in range(len(call.layout)):
        queries, keys = call.layout.spans(row)
        q_HTK = q_NHK[queries].transpose(0, 1)
        k_HSK = k_MGK[keys].transpose(0, 1).repeat_interleave(share, 0)
        v_HSK = v_MGK[keys].transpose(0, 1).repeat_interleave(share, 0)
        weights_HTS = explain(q_HTK, k_HSK, call, row=row, rows=slice(None))
        weights_HTS = F.dropout(weights_HTS, call.dropout, call.training)
        parts.append((weights_HTS @ v_HSK).transpose(0, 1))
    return torch.cat(parts) if parts else torch.zeros_like(q_NHK)


def grouped(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """Groups of equally long sequences through torch's fused attention."""
    if torch.compiler.is_compiling() and call.mask.function is None:
        return _grouped_compiled(q_NHK, k_MGK, v_MGK, call)
    return _pausing(q_NHK, k_MGK, v_MGK, call, _fused_group)


def explicit(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """Groups of equally long sequences with the weights written out."""
    return _pausing(q_NHK, k_MGK, v_MGK, call, _explicit_group)


def _pausing(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call, work: Work) -> Tensor:
    """The plan of the groups is made on the host, so a compiled graph pauses here."""
    if not torch.compiler.is_compiling():
        return _in_groups(q_NHK, k_MGK, v_MGK, call, work)
    paused = torch.compiler.disable(_in_groups)  # not as a decorator: that would import the compiler with this file
    out_NHK: Tensor = paused(q_NHK, k_MGK, v_MGK, call, work)
    return out_NHK


def _in_groups(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call, work: Work) -> Tensor:
    layout = call.layout
    parts = []
    for group in layout.groups:
        q_BHTK = group.take_q(q_NHK).transpose(1, 2)
        k_BGSK = group.take_k(k_MGK).transpose(1, 2)
        v_BGSK = group.take_k(v_MGK).transpose(1, 2)
        out_BTHK = work(q_BHTK, k_BGSK, v_BGSK, call, group).transpose(1, 2)
        uneven = len(set(group.q_lengths)) > 1
        parts.append(out_BTHK[group.q_real] if uneven else out_BTHK.flatten(0, 1))
    if not parts:
        return torch.zeros_like(q_NHK)
    if layout.order is None:
        return torch.cat(parts) if len(parts) > 1 else parts[0]
    parts.append(q_NHK.new_zeros(1, *q_NHK.shape[1:]))  # what a query that sees no key receives
    return torch.cat(parts)[layout.order]


def _allowed(call: Call, group: Group, heads: int) -> Tensor | None:
    """(B or 1, H or 1, T, S) True = may attend; None where everything is allowed."""
    if call.mask.free and not group.padded:
        return None
    row, query, key = group.places
    head = torch.arange(heads, device=group.device).view(1, -1, 1, 1) if call.mask.function else row[:1]
    if call.mask.function is None and not group.padded:
        row = row[:1]
    return call.mask.allowed(row, head, query, key)


def _fused_group(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: Call, group: Group) -> Tensor:
    square = not group.padded and q_BHTK.shape[2] == k_BGSK.shape[2]
    if call.mask == Mask(right=0) and square and call.bias_HR is None:
        return _fused(q_BHTK, k_BGSK, v_BGSK, call, causal=True)
    return _fused(q_BHTK, k_BGSK, v_BGSK, call, _allowed(call, group, q_BHTK.shape[1]), _bias(call, group))


def _bias(call: Call, group: Group) -> Tensor | None:
    return None if call.bias_HR is None else bias_between(call.bias_HR, *group.places[1:])


def _fused(
    q_BHTK: Tensor,
    k_BGSK: Tensor,
    v_BGSK: Tensor,
    call: Call,
    allowed: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    causal: bool = False,
) -> Tensor:
    """torch's fused attention; mask and bias broadcast over (B, H, T, S)."""
    extra = allowed
    if bias is not None:
        extra = bias.to(q_BHTK.dtype)
        extra = extra if allowed is None else extra.masked_fill(~allowed, float("-inf"))
    return F.scaled_dot_product_attention(
        q_BHTK,
        k_BGSK,
        v_BGSK,
        attn_mask=extra,
        dropout_p=call.dropout if call.training else 0.0,
        is_causal=causal,
        scale=call.score.scale,
        enable_gqa=q_BHTK.shape[1] != k_BGSK.shape[1],
    )


def _explicit_group(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: Call, group: Group) -> Tensor:
    return _written_out(q_BHTK, k_BGSK, v_BGSK, call, _allowed(call, group, q_BHTK.shape[1]), _bias(call, group))


def _written_out(
    q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, call: Call, allowed: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Score, mask, choose, mix; mask and bias broadcast over (B, H, T, S)."""
    share = q_BHTK.shape[1] // k_BGSK.shape[1]
    scores_BHTS = call.score.pairs(q_BHTK, k_BGSK.repeat_interleave(share, 1))
    scores_BHTS = scores_BHTS if bias is None else scores_BHTS + bias
    allowed = None if allowed is None else allowed.expand_as(scores_BHTS)
    weights_BHTS = choose(scores_BHTS, allowed, select=call.select, training=call.training)
    return F.dropout(weights_BHTS, call.dropout, call.training) @ v_BGSK.repeat_interleave(share, 1)


def slots(q_BHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """One new query a sequence against its slots; those not filled yet are masked."""
    layout = call.layout
    assert isinstance(layout, Slots)
    q_BH1K = q_BHK.unsqueeze(2)
    k_BGSK, v_BGSK = (
        x_MGK.unflatten(0, (-1, layout.capacity))[:, : layout.k_longest].transpose(1, 2) for x_MGK in (k_MGK, v_MGK)
    )
    slot_S = torch.arange(layout.k_longest, device=q_BHK.device).view(1, 1, 1, -1)
    query_B = (layout.filled - 1).view(-1, 1, 1, 1)
    row_B = torch.arange(len(layout), device=q_BHK.device).view(-1, 1, 1, 1)
    head_H = torch.arange(q_BHK.shape[1], device=q_BHK.device).view(1, -1, 1, 1)
    allowed = call.mask.allowed(row_B, head_H, query_B, torch.where(slot_S <= query_B, slot_S, -1))
    bias = None if call.bias_HR is None else bias_between(call.bias_HR, query_B, slot_S)
    work = _fused if call.fused else _written_out
    return work(q_BH1K, k_BGSK, v_BGSK, call, allowed, bias).squeeze(2)


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
    """`grouped` as one opaque operation, so that a compiled graph need not pause at its host-side plan."""
    call = _opened(q_bounds, k_bounds, bias_HR, window, scale, dropout)
    with _seeded(seed):
        return _in_groups(q_NHK, k_MGK, v_MGK, call, _fused_group).clone(memory_format=torch.contiguous_format)


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
    """Runs the groups again with gradients: attention is a small part of the work, its weights much of the memory.

    An operation of one's own runs beneath autograd, which is why this asks `torch.func` and not `torch.autograd`.
    """
    layout = _opened(q_bounds, k_bounds, None, window, scale, dropout).layout

    def again(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, *bias: Tensor) -> Tensor:
        call = _opened(q_bounds, k_bounds, bias[0] if bias else None, window, scale, dropout, layout)
        return _in_groups(q_NHK, k_MGK, v_MGK, call, _fused_group)

    given = [q_NHK, k_MGK, v_MGK] + ([] if bias_HR is None else [bias_HR])
    with _seeded(seed):
        back = torch.func.vjp(again, *given)[1]
    return [grad.clone(memory_format=torch.contiguous_format) for grad in back(grad_NHK)]


@_grouped_backward_op.register_fake
def _(grad_NHK: Tensor, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> list[Tensor]:
    given = [q, k, v] + ([rest[2]] if rest[2] is not None else [])
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in given]


@contextmanager
def _seeded(seed: Tensor | None) -> Iterator[None]:
    """The same dropout forward and backward; the caller's random numbers go on as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(int(seed))
        yield


def _opened(
    q_bounds: Tensor,
    k_bounds: Tensor,
    bias_HR: Tensor | None,
    window: list[int],
    scale: float,
    dropout: float,
    layout: Layout | None = None,
) -> Call:
    left, right = (None if reach < 0 else reach for reach in window[:2])
    layout = layout or Layout(q_bounds, q_bounds if torch.equal(q_bounds, k_bounds) else k_bounds, 0, 0)
    mask, score = Mask(left, right), Score(scale)
    return Call(layout, mask, score, bias_HR=bias_HR, dropout=dropout, training=dropout > 0)


def _grouped_compiled(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    dropout = call.dropout if call.training else 0.0
    seed = torch.randint(2**31, ()) if dropout > 0 else None
    out_NHK: Tensor = _grouped_op(
        q_NHK,
        k_MGK,
        v_MGK,
        call.layout.q_bounds,
        call.layout.k_bounds,
        call.bias_HR,
        [-1 if reach is None else reach for reach in (call.mask.left, call.mask.right)],
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


def varlen(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """FlashAttention on the flat tokens."""
    dropout = call.dropout if call.training else 0.0
    mask, scale = call.mask, call.score.scale
    return flat.flash(q_NHK, k_MGK, v_MGK, call.layout, left=mask.left, right=mask.right, scale=scale, dropout=dropout)


def flex(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: Call) -> Tensor:
    """FlexAttention on the flat tokens."""
    return flat.flex(q_NHK, k_MGK, v_MGK, call.layout, call.mask, bias_HR=call.bias_HR, scale=call.score.scale)


KERNELS: dict[str, Callable[[Tensor, Tensor, Tensor, Call], Tensor]] = {
    "reference": reference,
    "grouped": grouped,
    "explicit": explicit,
    "varlen": varlen,
    "flex": flex,
    "slots": slots,
}
