"""Negative log-likelihoods of chosen tokens, against torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from regard.data.batching.examples import Inputs
from regard.data.corpus.masking import IGNORE
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.language.perplexity import SlidingPerplexity
from regard.tasks.language.token_losses import WORD

TASK = SlidingPerplexity()  # TokenLossTask is abstract
TARGETS = [5, IGNORE, IGNORE, 3, 2, IGNORE]


def batch(rows: int = 3) -> Inputs:
    """Three sequences; the second has no target."""
    targets = torch.tensor(TARGETS)
    return TASK.prepare(Inputs(Ragged.of([[4, 5], [6], [7, 3, 2]]), by_token={WORD: targets}, rows=rows))


def logits(inputs: Inputs) -> Output:
    assert inputs.at is not None
    values = torch.randn(6, 9, generator=torch.Generator().manual_seed(1))
    return Output(torch.zeros(3, 1), values[inputs.at])


def test_only_tokens_with_a_target_reach_the_output_layer() -> None:
    inputs = batch()
    assert inputs.at is not None
    assert inputs.at.tolist() == [0, 3, 4]
    assert inputs["words"].tolist() == [5, 3, 2]


def test_the_loss_is_the_summed_cross_entropy() -> None:
    inputs = batch()
    output = logits(inputs)
    assert output.logits is not None
    loss = TASK.loss(output, inputs)
    expected = F.cross_entropy(output.logits, torch.tensor([5, 3, 2]), reduction="sum")
    assert float(loss.sum) == pytest.approx(float(expected), rel=1e-6)
    assert float(loss.count) == 3


def test_each_sequence_has_its_own_sum_and_count() -> None:
    inputs = batch()
    output = logits(inputs)
    assert output.logits is not None
    first, second, third = (-output.logits.log_softmax(-1)[range(3), [5, 3, 2]]).tolist()
    rows = TASK.row_outputs(output, inputs)
    assert [row[0] for row in rows] == pytest.approx([first, 0.0, second + third], rel=1e-5)
    assert [row[1] for row in rows] == [1, 0, 2]
    assert len(TASK.row_outputs(output, batch(rows=2))) == 2  # sequences after the first rows are padding
