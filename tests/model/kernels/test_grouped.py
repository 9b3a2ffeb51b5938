"""Sequences of equal length are computed together."""

import pytest
import torch
from tests.model.kernels.cases import CROSS, MASKS, SELF, H, K, layout_of

from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.grouped import explicit, explicit_group, grouped, in_groups


@pytest.mark.parametrize("kernel", [grouped, explicit])
@pytest.mark.parametrize("pairs", [SELF, CROSS], ids=["self", "cross"])
@pytest.mark.parametrize("mask", MASKS)
def test_groups_equal_the_reference(kernel, pairs, mask):
    torch.manual_seed(0)
    layout = layout_of(pairs)
    call = AttentionCall(layout, MASKS[mask])
    q = torch.randn(int(layout.q_bounds[-1]), H, K)
    k, v = torch.randn(2, int(layout.k_bounds[-1]), 2, K)
    expected = attend(q, k, v, call, kernel="reference")
    torch.testing.assert_close(kernel(q, k, v, call), expected, rtol=1e-5, atol=1e-6)


def test_there_is_one_group_for_each_length():
    calls = []

    def counted(q, k, v, call, group):
        calls.append((group.queries, len(group.rows)))
        return explicit_group(q, k, v, call, group)

    layout = layout_of(SELF)
    x = torch.randn(int(layout.q_bounds[-1]), H, K)
    assert in_groups(x, x, x, AttentionCall(layout), counted).shape == x.shape
    assert sorted(calls) == [(1, 1), (3, 2), (9, 1), (10, 1)]
