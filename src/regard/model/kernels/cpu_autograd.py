"""What torch is slow at on a CPU, done another way: GELU's gradient, dropout, small products with a turned side.

Each is the plain operation wherever it is not training on a CPU in fp32.
"""

from __future__ import annotations

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RANDOM_LEVELS = 1 << 16  # a share is so finely told apart: 16 random bits decide for each value
SMALL_PRODUCT = 64 * 64 * 64  # products up to this size are made by one thread alone
CUBIC, SLOPE = 0.044715, math.sqrt(2 / math.pi)  # of GELU by a hyperbolic tangent


def use_cpu_kernel(x: Tensor) -> bool:
    """Whether torch's own way would be the slow one."""
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def gelu(x: Tensor) -> Tensor:
    """x times the share of a normal distribution below it."""
    if use_cpu_kernel(x) and x.requires_grad:
        bent: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
        return bent
    return F.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU as GPT-2 computes it."""
    if use_cpu_kernel(x) and x.requires_grad:
        bent: Tensor = _GeluTanh.apply(x)  # type: ignore[no-untyped-call]
        return bent
    return F.gelu(x, approximate="tanh")


class _SavedSlope(torch.autograd.Function):
    """The slope is worked out on the way there, where most of it is at hand, and kept in place of x."""

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> Tensor:
        (slope,) = context.saved_tensors
        found: Tensor = grads[0] * slope
        return found


class _Gelu(_SavedSlope):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        below = torch.erf(x * math.sqrt(0.5)).add_(1.0).mul_(0.5)
        bell = x.square().mul_(-0.5).exp_().mul_(1 / math.sqrt(2 * math.pi))
        context.save_for_backward(bell.mul_(x).add_(below))
        return below.mul_(x)


class _GeluTanh(_SavedSlope):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        square = x.square()
        bent = (square * CUBIC).add_(1.0).mul_(x).mul_(SLOPE).tanh_()
        below = (bent + 1.0).mul_(0.5)
        rise = square.mul_(1.5 * CUBIC * SLOPE).add_(0.5 * SLOPE).mul_(x)
        context.save_for_backward(bent.square_().neg_().add_(1.0).mul_(rise).add_(below))
        return below.mul_(x)


def dropout(x: Tensor, rate: float, *, training: bool = True) -> Tensor:
    """Zeros in a share of the places, the rest scaled up. Four places are drawn with one number of the generator."""
    limit = round(rate * RANDOM_LEVELS)
    if not training or not use_cpu_kernel(x) or not 0 < limit < RANDOM_LEVELS:
        return F.dropout(x, rate, training)
    dropped: Tensor = _Drop.apply(x, limit)  # type: ignore[no-untyped-call]
    return dropped


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, limit: int) -> Tensor:
        drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
        keep = torch.empty(x.shape, dtype=x.dtype)  # numbers: true and false would be turned into them at every use
        torch.ge(drawn[: x.numel()].view(x.shape), limit - RANDOM_LEVELS // 2, out=keep).mul_(
            RANDOM_LEVELS / (RANDOM_LEVELS - limit)
        )
        context.save_for_backward(keep)
        return x * keep

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (keep,) = context.saved_tensors
        return grads[0] * keep, None


class Dropout(nn.Dropout):
    """As torch's."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, training=self.training)


def small_matmul(left: Tensor, right: Tensor) -> Tensor:
    """Many small matrices times as many. The second of two must lie row by row, or libraries take the long way."""
    if not use_cpu_kernel(left):
        return left @ right
    found: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, left: Tensor, right: Tensor) -> Tensor:
        context.save_for_backward(left, right)
        return _shared(left, right.contiguous())

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        left, right = context.saved_tensors
        one = _shared(grads[0], right.mT.contiguous()) if context.needs_input_grad[0] else None
        other = _shared(left.mT, grads[0].contiguous()) if context.needs_input_grad[1] else None
        return one, other


def _shared(left: Tensor, right: Tensor) -> Tensor:
    """torch makes one small product after the other, so a second thread takes half of them."""
    rows, columns = left.shape[-2], right.shape[-1]
    count = left.shape[:-2].numel()
    if torch.get_num_threads() < 2 or count < 8 or rows * columns * right.shape[-2] > SMALL_PRODUCT:
        return left @ right
    ones, others = left.reshape(count, rows, -1), right.reshape(count, -1, columns)
    out, half = left.new_empty(count, rows, columns), count // 2
    waiting = _helper().submit(_into, ones[:half], others[:half], out[:half])
    _into(ones[half:], others[half:], out[half:])
    waiting.result()
    return out.view(*left.shape[:-1], columns)


@torch.no_grad()
def _into(left: Tensor, right: Tensor, out: Tensor) -> None:
    torch.bmm(left, right, out=out)


@functools.cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="products")
