"""Kernels for sequences of different lengths."""

from dataclasses import replace

import pytest
import torch
from tests.model.kernels.cases import CROSS, MASKS, SELF, H, K, biases, layout_of
from torch.nn.attention.flex_attention import create_mask

from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.varlen import deterministic_algorithms, flash_attention, flex_rules


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", ["none", "learned"])
@pytest.mark.parametrize("pairs", [SELF, CROSS], ids=["self", "cross"])
def test_the_rules_given_to_flex_attention_are_those_of_the_reference(mask, bias, pairs):
    """The CUDA kernel cannot run here; its mask and bias can, in torch's own uncompiled form."""
    torch.manual_seed(0)
    layout = layout_of(pairs)
    n, m = int(layout.q_bounds[-1]), int(layout.k_bounds[-1])
    q, k, v = torch.randn(n, H, K), torch.randn(m, H, K), torch.randn(m, H, K)
    call = AttentionCall(layout, MASKS[mask], bias_HR=biases(17)[bias])
    allowed, adjust = flex_rules(layout, call.mask, call.bias_HR, n, m)
    allowed_HNM = create_mask(allowed, 1, H, n, m, device="cpu")[0]
    head, query, key = torch.arange(H).view(-1, 1, 1), torch.arange(n).view(-1, 1), torch.arange(m)
    scores_HNM = q.transpose(0, 1) @ k.permute(1, 2, 0)
    if adjust is not None:
        scores_HNM = adjust(scores_HNM, torch.tensor(0), head, query, key)
    weights_HNM = scores_HNM.masked_fill(~allowed_HNM, -torch.inf).softmax(-1).nan_to_num()
    out_NHK = (weights_HNM @ v.transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(out_NHK, attend(q, k, v, call, kernel="reference"), rtol=1e-5, atol=1e-5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_gradients_of_flash_attention_are_the_same_every_time(dropout):
    """By default FlashAttention adds up the gradient of the queries in any order."""
    layout = layout_of([(512, 512)] * 12 + [(250, 250)] * 38)
    layout = replace(layout, q_bounds=layout.q_bounds.cuda(), k_bounds=layout.k_bounds.cuda())
    n = int(layout.q_bounds[-1])
    q, k, v = (torch.randn(n, 12, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

    def gradients():
        torch.manual_seed(0)
        out = flash_attention(q, k, v, layout, left=None, right=None, scale=32**-0.5, dropout=dropout)
        return torch.autograd.grad(out.square().sum(), (q, k, v))

    first = gradients()
    for _ in range(10):
        assert all(torch.equal(one, other) for one, other in zip(first, gradients(), strict=True))
    assert not torch.are_deterministic_algorithms_enabled()


def test_deterministic_algorithms_are_used_in_the_block_only():
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic_algorithms():
            assert torch.get_deterministic_debug_mode() == 2
            assert not torch._C._get_deterministic_fill_uninitialized_memory()
        assert torch.get_deterministic_debug_mode() == 1
        assert torch._C._get_deterministic_fill_uninitialized_memory()
    finally:
        torch.use_deterministic_algorithms(False)
