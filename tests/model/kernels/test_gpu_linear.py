"""A linear layer whose bias gradient is a matrix product."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.model.kernels.gpu_linear import LinearFunction, is_half_training, ones_like_rows
from regard.model.linear import Linear


def tensors(rows: int, dtype: torch.dtype, device: str = "cpu") -> list[Tensor]:
    generator = torch.Generator().manual_seed(rows)
    shapes = ((rows, 24), (40, 24), (40,))
    return [torch.randn(shape, generator=generator).to(device, dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_output_and_gradients_are_those_of_torch(rows: int) -> None:
    some, expected = tensors(rows, torch.float64), tensors(rows, torch.float64)
    out, plain = LinearFunction.apply(*some), F.linear(*expected)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(out, plain)
    for one in (out, plain):
        one.square().sum().backward()
    for tensor, other in zip(some, expected, strict=True):
        torch.testing.assert_close(tensor.grad, other.grad)


def test_frozen_weights_have_no_gradient() -> None:
    x_NI, weight_OI, bias_O = tensors(3, torch.float32)
    out_NO = LinearFunction.apply(x_NI, weight_OI.detach(), bias_O.detach())  # type: ignore[no-untyped-call]
    out_NO.sum().backward()
    assert x_NI.grad is not None
    assert weight_OI.grad is None
    assert bias_O.grad is None


def test_gradients_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(LinearFunction.apply, tensors(5, torch.float64))


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 65])
def test_ones(rows: int) -> None:
    ones_1N = ones_like_rows(torch.zeros(rows, 2))
    assert torch.equal(ones_1N, torch.ones(1, rows))
    assert ones_like_rows(torch.zeros(rows, 5)).data_ptr() == ones_1N.data_ptr()


def test_only_training_in_16_bits_on_a_gpu() -> None:
    assert not is_half_training(*tensors(3, torch.bfloat16))
    assert not is_half_training(*tensors(3, torch.float32))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_in_16_bits(dtype: torch.dtype) -> None:
    x_NI, weight_OI, bias_O = tensors(500, dtype, "cuda")
    assert is_half_training(x_NI, weight_OI, bias_O)
    layer = Linear(24, 40, device="cuda", dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(weight_OI)
        layer.bias.copy_(bias_O)
    layer(x_NI).square().mean().backward()
    x_grad, x_NI.grad = x_NI.grad, None
    F.linear(x_NI, weight_OI, bias_O).square().mean().backward()
    for some, expected in ((x_grad, x_NI), (layer.weight.grad, weight_OI), (layer.bias.grad, bias_O)):
        torch.testing.assert_close(some, expected.grad, rtol=0.02, atol=1e-3)
