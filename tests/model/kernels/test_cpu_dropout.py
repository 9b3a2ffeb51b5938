"""Attention with dropout in tiles on the CPU."""

import pytest
import torch
from tests.model.kernels.cases import H, K, layout_of

from regard.model.kernels import cpu_dropout
from regard.model.kernels.cpu_autograd import RANDOM_LEVELS
from regard.model.kernels.cpu_dropout import attend_packed
from regard.model.kernels.dense import AttentionCall
from regard.model.kernels.dispatch import attend
from regard.model.kernels.layout import Mask

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
