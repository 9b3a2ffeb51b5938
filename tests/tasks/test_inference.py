"""Answers and scores of records: in order, in batches of any size, and what happens without enough memory."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from regard.data.batching.examples import Examples, Inputs
from regard.errors import InputError, NotFinite, RegardError
from regard.model.transformer import Output
from regard.tasks.classify import Classify, LabelAnswer
from regard.tasks.inference import (
    LossTotal,
    RunNetwork,
    answer_records,
    answer_rows,
    batch_outputs,
    check_finite,
    network_runner,
    score_records,
    score_rows,
)
from regard.tasks.task import Loss

CPU = torch.device("cpu")


@pytest.fixture
def task(texts) -> Classify:
    return Classify.from_records(texts)


@pytest.fixture
def run(small, task) -> RunNetwork:
    return network_runner(small.spread(task), task)


def counted(run: RunNetwork, sizes: list[int], *, limit: int = 10**9) -> RunNetwork:
    """The same network, which writes down the rows of each batch and has memory for `limit` of them."""

    def runs(inputs: Inputs) -> Output:
        sizes.append(inputs.rows)
        if inputs.rows > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(inputs)

    return runs


def examples(task, texts, small) -> Examples:
    made: Examples = task.examples(texts, small.preprocessing(), labeled=True)
    return made


def test_the_mean_of_losses_is_weighted_by_their_counts() -> None:
    total = LossTotal()
    assert math.isnan(total.mean)
    total.add(Loss(torch.tensor(6.0), torch.tensor(2.0)))
    total.add(Loss(torch.tensor(4.0), torch.tensor(3.0)))
    assert total.mean == 2.0


@pytest.mark.parametrize("batch_tokens", [1, 25, 8192])
def test_answers_come_in_the_order_of_the_records(small, task, run, texts, batch_tokens) -> None:
    expected = small.answers(task, small.spread(task), texts)
    answered = list(
        answer_records(task, run, iter(texts), small.preprocessing(), device=CPU, batch_tokens=batch_tokens)
    )
    assert [record for record, _ in answered] == texts
    for (_, answer), other in zip(answered, expected, strict=True):
        assert isinstance(answer, LabelAnswer)
        assert answer.scores == pytest.approx(other.scores, abs=1e-5)


def test_records_are_read_a_chunk_at_a_time(small, task, run, texts, monkeypatch) -> None:
    monkeypatch.setattr(Classify, "chunk_size", 2)
    read: list[Any] = []

    def stream():
        for record in texts:
            read.append(record)
            yield record

    answered = answer_records(task, run, stream(), small.preprocessing(), device=CPU)
    next(answered)
    assert len(read) == 2
    assert len(list(answered)) == len(texts) - 1


def test_batch_tokens_below_one_are_refused(small, task, run, texts) -> None:
    with pytest.raises(InputError, match="batch_tokens is 0, expected at least 1"):
        list(answer_records(task, run, texts, small.preprocessing(), device=CPU, batch_tokens=0))


def test_records_are_counted_after_each_batch(small, texts, task, run) -> None:
    counts: list[int] = []
    options: dict[str, Any] = {"device": CPU, "batch_tokens": 1, "on_batch": counts.append}
    list(answer_records(task, run, texts, small.preprocessing(), **options))
    assert counts == sorted(counts)
    assert len(counts) > 1
    assert counts[-1] == len(texts)


@torch.inference_mode()
def test_a_batch_is_halved_until_it_fits(small, task, run, texts) -> None:
    source, sizes, losses = examples(task, texts, small), list[int](), LossTotal()
    rows = list(range(len(texts)))
    tight = counted(run, sizes, limit=2)
    parts = list(batch_outputs(task, tight, source, rows, device=CPU, losses=losses))
    assert sizes == [7, 3, 1, 2, 4, 2, 2]
    assert [row for part, _ in parts for row in part] == rows
    whole = LossTotal()
    ((_, outputs),) = batch_outputs(task, run, source, rows, device=CPU, losses=whole)
    assert losses.mean == pytest.approx(whole.mean, rel=1e-5)
    assert losses.count == whole.count
    together = [output for _, part in parts for output in part]
    for one, other in zip(together, outputs, strict=True):
        torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other), atol=1e-5, rtol=1e-5)


def test_one_sequence_that_does_not_fit_is_an_error(small, task, run, texts) -> None:
    source = examples(task, texts, small)
    with pytest.raises(RegardError, match=rf"not enough memory for one sequence of {source.lengths[0]} tokens"):
        list(batch_outputs(task, counted(run, [], limit=0), source, [0, 1], device=CPU, losses=None))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_first_text_that_is_not_finite_is_named(small, task, run, texts, value) -> None:
    bad = small.preprocessing().tokenizer.encode(texts[4].text).ids

    def broken(inputs: Inputs) -> Output:
        output = run(inputs)
        assert output.logits is not None
        for row, ids in enumerate(inputs.tokens.split(inputs.tokens.ids)):
            if tuple(ids.tolist()) == tuple(bad):
                output.logits[row, 0] = value
        return output

    with pytest.raises(NotFinite, match="for text 4"):
        list(answer_records(task, broken, texts, small.preprocessing(), device=CPU))
    assert len(list(answer_records(task, broken, texts, small.preprocessing(), device=CPU, finite=False))) == 7


def test_finite_outputs_pass(task, run, texts, small) -> None:
    inputs = task.prepare(examples(task, texts, small).take([0, 1]))
    logits = run(inputs).logits
    checked = check_finite(run)(inputs).logits
    assert logits is not None
    assert checked is not None
    assert torch.equal(checked, logits)


def test_scores_are_those_of_the_answers(small, task, run, texts) -> None:
    answers = small.answers(task, small.spread(task), texts)
    result = score_records(task, run, texts, small.preprocessing(), device=CPU)
    right = sum(answer.label == record.label for answer, record in zip(answers, texts, strict=True))
    assert result.rows == 7
    assert result.scores["accuracy"].value == pytest.approx(right / 7)
    surprises = [-math.log(answer.scores[record.label]) for answer, record in zip(answers, texts, strict=True)]
    assert result.loss == pytest.approx(sum(surprises) / 7, rel=1e-4)
    assert result.value == result.scores[result.main].value


def test_rows_of_plain_text_are_scored_as_records_are(small, documents) -> None:
    from regard.tasks.language.causal import Causal

    task = Causal()
    run = network_runner(small.spread(task), task)
    rows = task.examples(documents, small.preprocessing(), labeled=True)
    losses, sizes = LossTotal(), list[int]()
    answered = list(answer_rows(task, counted(run, sizes), rows, device=CPU, batch_tokens=40, losses=losses))
    assert len(answered) == len(documents) == sum(sizes)
    assert len(sizes) > 1
    by_record = score_records(task, run, documents, small.preprocessing(), device=CPU)
    by_row = score_rows(task, run, rows, device=CPU)
    assert by_row.loss == pytest.approx(by_record.loss, rel=1e-5)
    assert losses.mean == pytest.approx(by_record.loss, rel=1e-5)
    assert by_row.scores["perplexity"].value == pytest.approx(math.exp(by_row.loss), rel=1e-5)


def test_sampled_targets_are_the_same_at_every_call(small, documents) -> None:
    from regard.tasks.language.masked import Masked

    task = Masked.from_records(documents, tokenizer=small.tokenizer)
    run = network_runner(small.spread(task), task)
    first, again = (score_records(task, run, documents, small.preprocessing(), device=CPU) for _ in range(2))
    other = score_records(task, run, documents, small.preprocessing(), device=CPU, seed=1)
    assert first.loss == again.loss != other.loss
