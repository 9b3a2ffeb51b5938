"""Attention with dropout in tiles on the CPU."""

import pytest
import torch
from tests.model.kernels.cases import H, K, layout_of

from regard.model.kernels.cpu_dropout import attend_packed
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend

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
