"""What is done another way on a CPU says what torch says."""

import pytest
import torch
from torch.nn import functional as F

from regard.model.kernels.cpu_autograd import Dropout, dropout, gelu, gelu_tanh, small_matmul


@pytest.mark.parametrize("slow", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"), [(gelu, F.gelu), (gelu_tanh, lambda x: F.gelu(x, approximate="tanh"))], ids=["erf", "tanh"]
)
def test_gelu_and_its_gradient_are_torchs(ours, theirs, slow, monkeypatch):
    """On any machine, as computed where torch's gradient is slow and where it is not."""
    monkeypatch.setattr("regard.model.kernels.cpu_autograd.SLOW_GELU", slow)
    x = torch.cat((torch.linspace(-12, 12, 401), torch.tensor([0.0, -0.0, 1e-30, 1e4, -1e4])))
    grads = []
    for activation in (ours, theirs):
        inputs = x.clone().requires_grad_()
        out = activation(inputs)
        (out * torch.linspace(1, 2, len(x))).sum().backward()
        grads.append((out.detach(), inputs.grad))
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-5, atol=2e-6)


def test_dropout_zeroes_a_share_scales_the_rest_and_passes_gradients_where_it_kept():
    torch.manual_seed(0)
    x = torch.ones(401, 1003, requires_grad=True)
    out = dropout(x, 0.1)
    out.sum().backward()
    zero = out == 0
    assert abs(float(zero.float().mean()) - 0.1) < 0.002
    torch.testing.assert_close(out[~zero], torch.full_like(out[~zero], 1 / 0.9), rtol=1e-4, atol=0)
    assert x.grad is not None
    assert torch.equal(x.grad, out.detach())
    assert abs(float(out.detach().mean()) - 1) < 0.002
    again = zero.float() - 0.1  # neighbors share a random number but are independent
    assert abs(float((again[:, 1:] * again[:, :-1]).mean())) < 0.001


def test_dropout_is_sampled_from_torchs_generator():
    torch.manual_seed(3)
    state = torch.get_rng_state()
    one = dropout(torch.ones(99, requires_grad=True), 0.5)
    torch.set_rng_state(state)
    assert torch.equal(one, dropout(torch.ones(99, requires_grad=True), 0.5))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_nothing_and_everything_may_be_dropped(share):
    x = torch.ones(50, requires_grad=True)
    assert torch.equal(Dropout(share)(x), x * (1 - share))
    assert torch.equal(Dropout(0.5).eval()(x), x)


@pytest.mark.parametrize("shape", [(3, 4, 16, 8), (2, 1, 5, 7), (40, 64, 32)])
def test_products_and_their_gradients_are_torchs(shape):
    generator = torch.Generator().manual_seed(1)
    left = torch.randn(shape, generator=generator)
    right = torch.randn(shape, generator=generator).mT
    grads = []
    for multiply in (small_matmul, torch.matmul):
        one, other = left.clone().requires_grad_(), right.clone().requires_grad_()
        out = multiply(one, other)
        (out * out).sum().backward()
        grads.append((out.detach(), one.grad, other.grad))
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # said by torch where the CPU has no bf16
def test_autocast_chooses_the_numbers_of_a_product():
    left = torch.randn(2, 8, 16, 16, requires_grad=True)
    right = torch.randn(2, 8, 16, 16).bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        result = small_matmul(left, right)
        assert torch.equal(result, left @ right)
    result.sum().backward()
    assert left.grad is not None
    assert right.grad is not None
