"""Attention over ragged batches behind one function, `attend`, which picks the fastest kernel.

| kernel      | where     | for                                                                             |
|-------------|-----------|---------------------------------------------------------------------------------|
| `reference` | anywhere  | everything, one sequence after the other, as in a textbook; slow                |
| `grouped`   | anywhere  | sequences of equal length together in `scaled_dot_product_attention`             |
| `packed`    | CPU       | training with dropout, which the fused attention lacks there: packed sequences  |
| `explicit`  | anywhere  | additive scores and hard selection, which no fused kernel has; also grouped     |
| `varlen`    | CUDA      | half precision, windows and causal masks: FlashAttention on the flat tokens      |
| `tiles`     | CUDA      | windows and causal masks without gradients, fp32 too: fast on short texts        |
| `dense`     | Hopper on | the same where all sequences are equally long: cuDNN's attention                  |
| `flex`      | CUDA      | a bias, a mask function, fp32 gradients: compiled FlexAttention on flat tokens  |
| `slots`     | anywhere  | one new token per sequence against the keys of a cache                          |

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one, H heads,
G key-value heads, K head width, R distances. True = may attend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.device import has_cudnn, has_flash, has_triton
from regard.errors import InputError, did_you_mean
from regard.model.kernels import varlen as flat
from regard.model.kernels.cpu_dropout import attend_packed
from regard.model.kernels.dense import (
    AttentionCall,
    explicit_attention,
    fused_attention,
    pairwise_bias,
    sequence_weights,
)
from regard.model.kernels.grouped import explicit, grouped
from regard.model.kernels.layout import SlotLayout

TILED = (torch.bfloat16, torch.float16, torch.float32)


_TILES = ContextVar("tiles", default=True)


@contextmanager
def without_tiles() -> Iterator[None]:
    """Do not use `tiles`, where another kernel can: Triton takes seconds to compile it for the first batches."""
    token = _TILES.set(False)
    try:
        yield
    finally:
        _TILES.reset(token)


def attend(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall, *, kernel: str = "auto") -> Tensor:
    """(N, H, K) for each query the weighted mean of the values; zeros where it may attend to no key."""
    if kernel == "auto":
        kernel = pick_kernel(q_NHK, call)
    if kernel not in KERNELS:
        raise InputError(f'attention kernel "{kernel}" is not known.{did_you_mean(kernel, KERNELS)}')
    return KERNELS[kernel](q_NHK, k_MGK, v_MGK, call)


def may_use_tiles() -> bool:
    """Whether `without_tiles` does not exclude them. While a network is compiled, a context variable cannot be read."""
    return torch.compiler.is_compiling() or _TILES.get()


def has_tiles(gpu: int) -> bool:
    """Whether our Triton kernel runs on that GPU."""
    return has_flash(gpu) and has_triton()


def runs_flat(dtype: torch.dtype, width: int, gpu: int) -> bool:
    """Whether FlashAttention runs with this dtype and head width on that GPU."""
    return dtype in (torch.bfloat16, torch.float16) and width % 8 == 0 and width <= 256 and has_flash(gpu)


def pick_kernel(q_NHK: Tensor, call: AttentionCall) -> str:
    """The fastest kernel for this call on this hardware."""
    if isinstance(call.layout, SlotLayout):
        return "slots"
    if not call.can_fuse:
        return "explicit"
    if q_NHK.device.type != "cuda":
        packs = call.active_dropout > 0.0 and call.layout.is_self_attention and call.mask.function is None
        return "packed" if packs and not torch.compiler.is_compiling() else "grouped"
    width, gpu = q_NHK.shape[-1], q_NHK.device.index or 0
    if call.bias_HR is None and call.mask.function is None:
        reading = not torch.is_grad_enabled() and call.active_dropout == 0.0
        if reading and may_use_tiles() and width in (16, 32, 64, 128) and q_NHK.dtype in TILED and has_tiles(gpu):
            return "tiles"
        if runs_flat(q_NHK.dtype, width, gpu):
            return "dense" if not reading and is_rectangle(q_NHK, call) and has_cudnn(gpu) else "varlen"
    return "flex" if width >= 16 and call.active_dropout == 0.0 else "grouped"


def is_rectangle(q_NHK: Tensor, call: AttentionCall) -> bool:
    """Whether all sequences are equally long, and the mask is none or causal."""
    return call.layout.equal_lengths(q_NHK.shape[0]) and call.mask.left is None and call.mask.right in (None, 0)


def reference(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """One sequence after the other: scores, mask, softmax, weighted sum of the values. Tests compare with it."""
    heads_per_kv = q_NHK.shape[1] // k_MGK.shape[-2]
    parts = []
    for row in range(len(call.layout)):
        q_HTK = q_NHK[call.layout.spans(row)[0]].transpose(0, 1)
        k_HSK, v_HSK = (
            call.layout.keys_of(x_MGK, row).transpose(0, 1).repeat_interleave(heads_per_kv, 0)
            for x_MGK in (k_MGK, v_MGK)
        )
        weights_HTS = sequence_weights(q_HTK, k_HSK, call, row=row, rows=slice(None))
        weights_HTS = F.dropout(weights_HTS, call.active_dropout)
        parts.append((weights_HTS @ v_HSK).transpose(0, 1))
    return torch.cat(parts) if parts else torch.zeros_like(q_NHK)


def slots(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """Decoding: the new queries of each sequence against its cache slots, of which unfilled ones are masked."""
    layout = call.layout
    assert isinstance(layout, SlotLayout)
    q_BHTK = q_NHK.unflatten(0, (-1, layout.q_max_length)).transpose(1, 2)
    k_BGSK, v_BGSK = (layout.in_slots(x_MGK)[:, : layout.k_max_length].transpose(1, 2) for x_MGK in (k_MGK, v_MGK))
    if not call.can_fuse:
        out_BHTK = explicit_attention(q_BHTK, k_BGSK, v_BGSK, call, *_between(layout, call, q_NHK.shape[1]))
    else:
        out_BHTK = fused_attention(q_BHTK, k_BGSK, v_BGSK, call, None, _added(layout, call, q_NHK))
    return out_BHTK.transpose(1, 2).flatten(0, 1)


def _between(layout: SlotLayout, call: AttentionCall, heads: int) -> tuple[Tensor, Tensor | None]:
    """The mask and the bias, broadcast over (B, H, 1, S)."""
    device = layout.filled.device
    slot_S = torch.arange(layout.k_max_length, device=device).view(1, 1, 1, -1)
    query_B = (layout.filled - 1).view(-1, 1, 1, 1)
    row_B = torch.arange(len(layout), device=device).view(-1, 1, 1, 1)
    head_H = torch.arange(heads, device=device).view(1, -1, 1, 1)
    allowed = call.mask.allowed(row_B, head_H, query_B, torch.where(slot_S <= query_B, slot_S, -1))
    return allowed, None if call.bias_HR is None else pairwise_bias(call.bias_HR, query_B, slot_S)


def _added(layout: SlotLayout, call: AttentionCall, q_NHK: Tensor) -> Tensor | None:
    """Mask and bias added to the scores, computed by the first layer and reused; None where all slots are allowed."""
    left, right, function = call.mask.left, call.mask.right, call.mask.function
    if layout.all_filled and left is None and function is None and call.bias_HR is None:
        return None
    key = (left, right, function, q_NHK.dtype)
    if key not in layout.score_masks:
        allowed, bias = _between(layout, call, q_NHK.shape[1])
        start = torch.zeros((), dtype=q_NHK.dtype, device=q_NHK.device) if bias is None else bias.to(q_NHK.dtype)
        layout.score_masks[key] = torch.where(allowed, start, float("-inf"))
    return layout.score_masks[key]


def varlen(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """FlashAttention on the flat tokens, see `varlen.flash_attention`."""
    left, right, scale = call.mask.left, call.mask.right, call.score.scale
    return flat.flash_attention(
        q_NHK, k_MGK, v_MGK, call.layout, left=left, right=right, scale=scale, dropout=call.active_dropout
    )


def dense(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """cuDNN attention on sequences of equal length, see `varlen.cudnn_attention`."""
    causal, scale = call.mask.right == 0, call.score.scale
    return flat.cudnn_attention(
        q_NHK, k_MGK, v_MGK, len(call.layout), causal=causal, scale=scale, drop=call.active_dropout
    )


def tiles(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """Our Triton kernel for inference, see triton_tiles.py."""
    from regard.model.kernels.triton_tiles import attend_tiles

    left, right, scale = call.mask.left, call.mask.right, call.score.scale
    return attend_tiles(q_NHK, k_MGK, v_MGK, call.layout, left=left, right=right, scale=scale)


def flex(q_NHK: Tensor, k_MGK: Tensor, v_MGK: Tensor, call: AttentionCall) -> Tensor:
    """FlexAttention on the flat tokens, see `varlen.flex_attention`."""
    return flat.flex_attention(
        q_NHK, k_MGK, v_MGK, call.layout, call.mask, bias_HR=call.bias_HR, scale=call.score.scale
    )


KERNELS: dict[str, Callable[[Tensor, Tensor, Tensor, AttentionCall], Tensor]] = {
    "reference": reference,
    "grouped": grouped,
    "packed": attend_packed,
    "explicit": explicit,
    "tiles": tiles,
    "varlen": varlen,
    "dense": dense,
    "flex": flex,
    "slots": slots,
}
