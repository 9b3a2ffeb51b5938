"""Kernels of the CPU: tiles, dropout and gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.model.kernels.cases import MASKS, H, K, agree, few, layout_of
from torch.nn import functional as F

from regard.model.kernels import cpu_dropout
from regard.model.kernels.cpu_autograd import RANDOM_LEVELS, Dropout, dropout, gelu, gelu_tanh, small_matmul
from regard.model.kernels.cpu_dropout import attend_packed
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Mask

# Sequences packed into tiles on the CPU.


PACKED = [(3, 3), (70, 70), (0, 0), (60, 60), (130, 130), (1, 1), (160, 160)]  # tiles shared, full, and of one's own


@pytest.mark.parametrize("bias", ["none", "learned"])
@pytest.mark.parametrize("groups", [H, 2])
@pytest.mark.parametrize("mask", [name for name, mask in MASKS.items() if mask.function is None])
def test_tiles_agree_with_the_reference(mask, groups, bias):
    agree("packed", PACKED, mask=MASKS[mask], groups=groups, bias=bias)


@few
@given(st.lists(st.integers(0, 140), max_size=6))
def test_tiles_agree_for_any_lengths(lengths):
    agree("packed", [(length, length) for length in lengths])


# Attention with dropout in tiles on the CPU.


LENGTHS = [(3, 3), (70, 70), (1, 1), (130, 130)]


def test_without_dropout_it_equals_the_reference():
    torch.manual_seed(0)
    call = AttentionCall(layout_of(LENGTHS))
    q, k, v = torch.randn(3, 204, H, K)
    torch.testing.assert_close(attend_packed(q, k, v, call), attend(q, k, v, call, kernel="reference"))


@pytest.mark.parametrize("training", [False, True])
def test_dropout_is_applied_in_training_alone(training):
    torch.manual_seed(0)
    call = AttentionCall(layout_of(LENGTHS), dropout=0.5, training=training)
    q, k, v = torch.randn(3, 204, H, K)
    first, second = attend_packed(q, k, v, call), attend_packed(q, k, v, call)
    assert torch.equal(first, second) is not training


def test_an_empty_batch_has_an_empty_result():
    x = torch.randn(0, H, K)
    assert attend_packed(x, x, x, AttentionCall(layout_of([(0, 0)]))).shape == (0, H, K)


@pytest.mark.parametrize("mask", [Mask(), Mask(right=0), Mask(left=2, right=5)])
@pytest.mark.parametrize("scores", [1, 2 * 64 * 64, 2 * H * 160 * 160, 1 << 20])
def test_chunks_are_what_all_scores_at_once_are(monkeypatch, mask, scores):
    """Chunks of a single head, of some heads of a tile, of some tiles, and one of everything."""
    torch.manual_seed(0)
    monkeypatch.setattr(cpu_dropout, "CHUNK", scores // torch.get_num_threads() + 1)
    lengths = [(length, length) for length in (3, 70, 1, 130, 61, 20, 160, 47)]
    call = AttentionCall(layout_of(lengths), mask, dropout=0.3, training=True)
    tokens = sum(length for length, _ in lengths)
    q, k, v, grad = torch.randn(4, tokens, H, K)
    results = []
    for together in (False, True):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        if together:
            monkeypatch.setattr(cpu_dropout._InChunks, "apply", _all_at_once)
        torch.manual_seed(1)
        output = attend_packed(inputs[0], inputs[1], inputs[2], call)
        results.append([output, *torch.autograd.grad(output, inputs, grad)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=2e-5)


def _all_at_once(q, k, v, mask, limit):
    return cpu_dropout.all_at_once(q, k, v, mask, limit / RANDOM_LEVELS)


# What is done another way on a CPU says what torch says.


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
