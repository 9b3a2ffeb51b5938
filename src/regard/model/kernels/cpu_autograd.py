"""Faster training on a CPU: GELU with its gradient, dropout, and batches of small matrix products.

Each function is the plain torch operation everywhere except in fp32 training on a CPU.
"""

from __future__ import annotations

import functools
import math
import platform
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RANDOM_LEVELS = 1 << 16  # 16 random bits decide whether a value is dropped
SMALL_PRODUCT = 64 * 64 * 64  # torch computes products up to this size in one thread
SLOW_GELU = platform.machine().lower() in ("aarch64", "arm64")  # there torch's gradient of GELU takes 10 times as long
CUBIC, SLOPE = 0.044715, math.sqrt(2 / math.pi)  # constants of the tanh approximation of GELU


def use_cpu_kernel(x: Tensor) -> bool:
    """Whether the kernels of this file are faster than torch here: fp32 training on a CPU."""
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def gelu(x: Tensor) -> Tensor:
    """GELU (Hendrycks and Gimpel 2016): x times the probability that a standard normal variable is below x."""
    if SLOW_GELU and use_cpu_kernel(x) and x.requires_grad:
        activated: Tensor = _Gelu.apply(x)  # type: ignore[no-untyped-call]
        return activated
    return F.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """The tanh approximation of GELU, as in GPT-2."""
    if SLOW_GELU and use_cpu_kernel(x) and x.requires_grad:
        activated: Tensor = _GeluTanh.apply(x)  # type: ignore[no-untyped-call]
        return activated
    return F.gelu(x, approximate="tanh")


class _SavedSlope(torch.autograd.Function):
    """An activation that computes its derivative in the forward pass, where most of it is known, and saves it."""

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> Tensor:
        (slope,) = context.saved_tensors
        result: Tensor = grads[0] * slope
        return result


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
        activated = (square * CUBIC).add_(1.0).mul_(x).mul_(SLOPE).tanh_()
        below = (activated + 1.0).mul_(0.5)
        rise = square.mul_(1.5 * CUBIC * SLOPE).add_(0.5 * SLOPE).mul_(x)
        context.save_for_backward(activated.square_().neg_().add_(1.0).mul_(rise).add_(below))
        return below.mul_(x)


def dropout(x: Tensor, rate: float, *, training: bool = True) -> Tensor:
    """Dropout (Srivastava et al. 2014): zero values with probability `rate`, scale the others by 1 / (1 - rate).

    One 64-bit random number decides for four values, 16 bits each.
    """
    limit = random_limit(rate)
    if not training or not use_cpu_kernel(x) or limit is None:
        return F.dropout(x, rate, training)
    dropped: Tensor = _Drop.apply(x, limit)  # type: ignore[no-untyped-call]
    return dropped


def random_limit(rate: float) -> int | None:
    """How many of the 65,536 values of 16 random bits drop a value; None where 16 bits cannot express the rate."""
    limit = round(rate * RANDOM_LEVELS)
    return limit if 0 < limit < RANDOM_LEVELS else None


def random_int16(shape: torch.Size, memory: Tensor | None = None) -> Tensor:
    """16 random bits per value, from -32,768 on; in `memory`, 64-bit integers of which there are enough, if given."""
    count = -(-shape.numel() // 4)
    bits = torch.empty(count, dtype=torch.int64) if memory is None else memory[:count]
    return bits.random_(-(1 << 63), None).view(torch.int16)[: shape.numel()].view(shape)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, limit: int) -> Tensor:
        keep = torch.empty(x.shape, dtype=x.dtype)  # floats: booleans would be converted at every use
        torch.ge(random_int16(x.shape), limit - RANDOM_LEVELS // 2, out=keep).mul_(
            RANDOM_LEVELS / (RANDOM_LEVELS - limit)
        )
        context.save_for_backward(keep)
        return x * keep

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (keep,) = context.saved_tensors
        return grads[0] * keep, None


class Dropout(nn.Dropout):
    """nn.Dropout with the faster CPU kernel."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, training=self.training)


def small_matmul(left: Tensor, right: Tensor) -> Tensor:
    """Batched product of small matrices. The right side is made contiguous, which is faster than a transposed view."""
    if not use_cpu_kernel(left):
        return left @ right
    result: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, left: Tensor, right: Tensor) -> Tensor:
        context.save_for_backward(left, right)
        return small_product(left, right)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        left, right = context.saved_tensors
        left_grad = small_product(grads[0], right.mT) if context.needs_input_grad[0] else None
        right_grad = small_product(left.mT, grads[0]) if context.needs_input_grad[1] else None
        return left_grad, right_grad


def small_product(left: Tensor, right: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product alone, without gradients. torch computes small ones in turn, so a second thread computes half."""
    rows, columns = left.shape[-2], right.shape[-1]
    count = left.shape[:-2].numel()
    if out is None:
        out = left.new_empty(*left.shape[:-1], columns)
    lefts, rights = left.reshape(count, rows, -1), right.contiguous().view(count, -1, columns)
    outs, half = out.view(count, rows, columns), count // 2
    if torch.get_num_threads() < 2 or count < 8 or rows * columns * right.shape[-2] > SMALL_PRODUCT:
        _into(lefts, rights, outs)
        return out
    future = _helper().submit(_into, lefts[:half], rights[:half], outs[:half])
    _into(lefts[half:], rights[half:], outs[half:])
    future.result()
    return out


@torch.no_grad()
def _into(left: Tensor, right: Tensor, out: Tensor) -> None:
    torch.bmm(left, right, out=out)


@functools.cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="products")
