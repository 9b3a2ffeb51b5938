"""Bidirectional language modeling: targets and losses of both directions, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from regard.data.batching.examples import LEARN, Inputs
from regard.data.corpus.masking import IGNORE
from regard.data.records import DocumentRecord
from regard.model.transformer import Output
from regard.ragged import Ragged
from regard.tasks.language.bidirectional_lm import BidirectionalAnswer, BidirectionalLM

NONE = IGNORE
TASK = BidirectionalLM()


def batch(context: tuple[int, ...] = ()) -> Inputs:
    """Sequences of three tokens, one and two; the tokens at the positions of `context` are no targets."""
    learn = torch.zeros(6, dtype=torch.int64)
    learn[list(context)] = IGNORE
    return TASK.prepare(Inputs(Ragged.of([[4, 5, 6], [7], [8, 9]]), by_token={LEARN: learn}, rows=3))


def output(vocabulary: int = 10) -> Output:
    logits = torch.randn(6, 2, vocabulary, generator=torch.Generator().manual_seed(0))
    return Output(torch.zeros(6, 1), logits)


def test_targets_are_the_tokens_on_both_sides() -> None:
    inputs = batch()
    assert inputs["next"].tolist() == [5, 6, NONE, NONE, 9, NONE]
    assert inputs["before"].tolist() == [NONE, 4, 5, NONE, NONE, 8]


def test_context_is_no_target() -> None:
    inputs = batch(context=(1, 4))
    assert inputs["next"].tolist() == [NONE, 6, NONE, NONE, 9, NONE]
    assert inputs["before"].tolist() == [NONE, 4, NONE, NONE, NONE, NONE]


def test_the_loss_is_the_sum_of_both_directions() -> None:
    made = output()
    assert made.logits is not None
    ahead = F.cross_entropy(made.logits[[0, 1, 4], 0], torch.tensor([5, 6, 9]), reduction="sum")
    back = F.cross_entropy(made.logits[[1, 2, 5], 1], torch.tensor([4, 5, 8]), reduction="sum")
    loss = TASK.loss(made, batch())
    assert float(loss.sum) == pytest.approx(float(ahead + back), rel=1e-5)
    assert float(loss.count) == 6


def test_each_sequence_has_its_own_sums() -> None:
    made = output()
    assert made.logits is not None
    rows = TASK.row_outputs(made, batch())
    log_probs = made.logits.log_softmax(-1)
    ahead, back = -float(log_probs[4, 0, 9]), -float(log_probs[5, 1, 8])
    assert rows[1] == [0, 0, 0, 0]  # a single token has nothing beside it
    assert rows[2] == pytest.approx([ahead, back, 1, 1], rel=1e-5)
    assert sum(row[0] + row[1] for row in rows) == pytest.approx(float(TASK.loss(made, batch()).sum), rel=1e-5)


def test_windows_of_a_text_are_added_up() -> None:
    answer = TASK.answer(DocumentRecord("a text"), [[1.0, 2.0, 3.0, 4.0], [0.5, 0.25, 1.0, 2.0]])
    assert answer == BidirectionalAnswer(2, ahead=1.5, back=2.25, counts=(4, 6))
    meter = TASK.meter()
    TASK.update(meter, answer, DocumentRecord("a text"))
    scores = meter.scores()
    assert scores["perplexity_ahead"].value == pytest.approx(math.exp(1.5 / 4))
    assert scores["perplexity_back"].value == pytest.approx(math.exp(2.25 / 6))
    assert scores["perplexity"].value == pytest.approx(math.exp(3.75 / 10))


def test_it_needs_the_head_of_both_sides() -> None:
    assert TASK.heads == {"sides": 0}
    assert BidirectionalLM.from_settings(TASK.settings()) == TASK
