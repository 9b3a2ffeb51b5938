"""Answers that are stretches of a context."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import samples
from regard.data.batching.preprocessing import Preprocessing
from regard.data.readers import read
from regard.data.records import AnswerRecord, Place
from regard.data.records import AnswerSpan as Gold
from regard.errors import DataError
from regard.export.int8_encoder import open_int8_encoder
from regard.metrics.meter import AnswerMeter
from regard.tasks.answer import BEST, NOTHING, SHOWN, QuestionAnswering, SpanAnswer, WindowSpans, best_spans
from regard.tasks.task import RowOutputs
from regard.text.learn import train_tokenizer_from_texts

GOLDEN = [3.67962, 3.45774, 3.35005, 2.89606, 2.58262, 1.79075, 1.01586, 2.5008, 0.94424, 1.35612]
GOLDEN += [0.95527, 0.55323, 1.3551, 1.01695, 2.06927, 1.7512, 0.83913, 1.21918, 0.35078, 0.91666]
CONTEXT = "Anna Berg went to Paris."


@pytest.fixture
def task(questions):
    return QuestionAnswering.from_records(questions)


def window_spans(*spans, none=0.0):
    """A window with these stretches: start, end, score."""
    starts, ends, scores = (np.array(column) for column in zip(*spans, strict=True))
    return WindowSpans(starts, ends, scores, none)


def question_record(context=CONTEXT, *, answers=None):
    return AnswerRecord("1", context, "Who?", answers)


def test_it_learns_whether_every_question_has_an_answer(task, questions):
    assert task == QuestionAnswering(unanswerable=True, threshold=0.0, max_tokens=30)
    assert not QuestionAnswering.from_records([record for record in questions if record.answerable]).unanswerable
    assert task.heads == {"span": 2}
    assert task.labels is None


def test_targets_are_the_tokens_of_the_answer(small, task, questions):
    examples = task.examples(questions, small.preprocessing(), labeled=True)
    for row, record in enumerate(questions):
        start, end = (int(examples.by_sequence[name][row]) for name in ("start", "end"))
        result = small.tokenizer.encode(record.question, record.context)
        assert examples.take([row]).tokens.ids.tolist() == list(result.ids)
        if record.answers:
            (gold,) = record.answers
            assert result.sequence_ids[start] == result.sequence_ids[end] == 1
            assert (result.offsets[start][0], result.offsets[end][1]) == (gold.start, gold.start + len(gold.text))
        else:
            assert (start, end) == (0, 0)


def test_the_first_of_several_answers_is_learned(small, task):
    record = question_record(answers=(Gold("Paris", 18), Gold("Anna", 0)))
    alone = replace(record, answers=record.answers[:1])
    both = task.examples([record, alone], small.preprocessing(), labeled=True)
    assert both.by_sequence["start"][0] == both.by_sequence["start"][1]


def test_a_window_without_the_whole_answer_points_to_its_first_token(small, task):
    context = "it is a dog " * 20 + "Anna Berg went to Paris " + "it is a dog " * 20
    record = question_record(context, answers=(Gold("Anna Berg", context.index("Anna")),))
    examples = task.examples([record], small.preprocessing(window=40), labeled=True)
    assert len(examples) > 4
    holding = 0
    for row in range(len(examples)):
        inputs = examples.take([row])
        start, end = int(inputs["start"]), int(inputs["end"])
        if (start, end) != (0, 0):
            holding += 1
            first, last = int(inputs["begin"][start]), int(inputs["finish"][end])
            assert context[first:last] == "Anna Berg"
    assert 1 <= holding < len(examples)


def test_a_question_as_long_as_the_window_is_named(small, task):
    record = AnswerRecord("1", "a dog", "who is it? " * 20, (), place=Place("dev.json", row=3))
    with pytest.raises(DataError, match=r"^dev.json row 3: the question has \d+ tokens: .* nothing is left"):
        task.examples([record], small.preprocessing(window=30), labeled=True)


def floats(minimum, limit):
    values = st.floats(-20, 20, width=32)
    return st.integers(minimum, limit).flatmap(
        lambda size: st.tuples(*[st.lists(values, min_size=size, max_size=size)] * 2)
    )


@given(scores=floats(0, 30), longest=st.integers(1, 8), limit=st.integers(1, 12))
def test_the_best_stretches_are_found(scores, longest, limit):
    starts, ends = (np.array(column, np.float32) for column in scores)
    first, last, result = best_spans(starts, ends, max_length=longest, count=limit)
    every = [(starts[i] + ends[j], i, j) for i in range(len(starts)) for j in range(i, min(i + longest, len(ends)))]
    assert result.tolist() == sorted((score for score, _, _ in every), reverse=True)[:limit]
    assert all(0 <= j - i < longest for i, j in zip(first, last, strict=True))
    assert [starts[i] + ends[j] for i, j in zip(first, last, strict=True)] == result.tolist()
    assert len({*zip(first.tolist(), last.tolist(), strict=True)}) == len(first)


def test_the_temperature_makes_probabilities_as_large_as_answers_are_right():
    task, rng = QuestionAnswering(unanswerable=True), np.random.default_rng(0)
    rows = []
    for _ in range(300):
        gold = (Gold("Anna", 0),) if rng.random() < 0.7 else (Gold("Paris", 18),)
        window = window_spans((0, 4, 9.0), (18, 23, 3.0), none=-2.0)
        rows.append(RowOutputs(question_record(answers=gold), [window]))
    meter = task.meter()
    for row in rows:
        task.update(meter, task.answer(row.record, row.outputs), row.record)
    tuned = task.tuned(meter, rows)
    both: list[Any] = [one.answer(rows[0].record, rows[0].outputs) for one in (task, tuned)]
    before, after = both
    assert (before.answer, after.answer) == ("Anna", "Anna")
    assert before.score > 0.99
    assert after.score == pytest.approx(0.7, abs=0.08)
    assert QuestionAnswering.from_settings(json.loads(json.dumps(tuned.settings()))) == tuned
    assert task.tuned(meter, rows[:20]).temperature == 1  # too few
    unanswered: Any = replace(tuned, threshold=-100.0).answer(rows[0].record, rows[0].outputs)
    assert (unanswered.answer, unanswered.start) == ("", None)


def test_windows_are_put_together():
    task = QuestionAnswering()
    answer = task.answer(
        question_record(), [window_spans((0, 9, 2.0), (0, 4, 1.0)), window_spans((18, 23, 3.0), (0, 9, 2.5))]
    )
    assert isinstance(answer, SpanAnswer)
    assert [one.answer for one in answer.candidates] == ["Paris", "Anna Berg", "Anna"]
    assert (answer.answer, answer.start, answer.end) == ("Paris", 18, 23)
    expected = torch.tensor([3.0, 2.5, 1.0]).softmax(0).tolist()
    assert [one.score for one in answer.candidates] == pytest.approx(expected)
    assert answer.score == pytest.approx(expected[0])
    assert (answer.no_answer, answer.windows) == (None, 2)
    assert list(answer.json()) == ["answer", "start", "end", "score", "candidates", "truncated", "windows"]


def test_space_at_the_edges_is_no_part_of_an_answer():
    answer = QuestionAnswering().answer(
        question_record(" Anna  Berg "), [window_spans((0, 6, 2.0), (5, 7, 1.5), (1, 5, 1.0))]
    )
    assert isinstance(answer, SpanAnswer)
    assert [tuple(one)[:3] for one in answer.candidates] == [("Anna", 1, 5)]


def test_accents_of_their_own_belong_to_an_answer():
    answer = QuestionAnswering().answer(question_record("Rene\u0301 left"), [window_spans((0, 4, 2.0), (6, 10, 1.0))])
    assert isinstance(answer, SpanAnswer)
    assert [tuple(one)[:3] for one in answer.candidates] == [("Rene\u0301", 0, 5), ("left", 6, 10)]


def test_no_more_candidates_than_can_be_read():
    spans = [(start, start + 1, float(-start)) for start in range(BEST)]
    answer = QuestionAnswering().answer(question_record("x" * BEST), [window_spans(*spans)])
    assert isinstance(answer, SpanAnswer)
    assert len(answer.candidates) == SHOWN


@pytest.mark.parametrize(
    ("threshold", "none", "expected"),
    [(0.0, 2.9, "Paris"), (0.0, 3.1, ""), (1.0, 3.5, "Paris"), (-1.0, 2.5, "")],
)
def test_a_question_is_left_unanswered_above_the_threshold(threshold, none, expected):
    task = QuestionAnswering(unanswerable=True, threshold=threshold)
    answer = task.answer(
        question_record(), [window_spans((18, 23, 3.0), none=none), window_spans((0, 4, 1.0), none=none + 1)]
    )
    assert isinstance(answer, SpanAnswer)
    assert answer.answer == expected
    assert (answer.start is None) == (not expected)
    assert answer.best == "Paris"
    assert answer.no_answer == pytest.approx(none - 3)
    assert {one.answer for one in answer.candidates} == {"Paris", "Anna", ""}
    assert sum(one.score for one in answer.candidates) == pytest.approx(1)


def test_a_context_without_words_has_no_answer(small, task):
    network = small.spread(task)
    for kind in (task, QuestionAnswering()):
        (answer,) = small.answers(kind, network, [question_record("")])
        assert (answer.answer, answer.start, answer.end) == NOTHING[:3]
    assert small.score(task, network, [question_record("", answers=())]).scores["exact"].value == 1


def test_only_the_context_and_the_first_token_are_computed(small, task, questions):
    examples = task.examples(questions, small.preprocessing(), labeled=False)
    inputs = examples.take(range(len(examples)))
    prepared = task.prepare(inputs)
    context = (inputs["begin"] >= 0).nonzero().squeeze(1).tolist()
    assert prepared.at.tolist() == sorted({*context, *inputs.tokens.first().tolist()})
    assert len(prepared.at) < inputs.tokens.tokens
    for name in ("begin", "finish"):
        assert torch.equal(prepared[name], inputs[name][prepared.at])
    labeled = task.examples(questions, small.preprocessing(), labeled=True).take([0])
    assert task.prepare(labeled).at is None  # the loss reads all tokens


@pytest.mark.parametrize("window", [None, 40])
def test_answers_are_the_same_where_all_tokens_are_computed(small, task, questions, window):
    network = small.spread(task)
    long = question_record("it is a dog " * 20 + CONTEXT, answers=())
    records = [*questions, long, question_record("", answers=())]
    some, whole = (small.answers(task, network, records, labeled=all_, window=window) for all_ in (False, True))
    assert_same_answers(some, whole)


def test_answers_of_int8_are_the_same_where_all_tokens_are_computed(small, task, questions):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    network = small.network(task)
    small.golden(task, questions, network=network, steps=40)
    opened = open_int8_encoder(network)
    some, whole = (small.answers(task, opened, questions, labeled=all_) for all_ in (False, True))
    assert_same_answers(some, whole, abs=0.02)
    assert [answer.answer for answer in some] == [answer.answer for answer in small.answers(task, network, questions)]


def assert_same_answers(answers, others, *, abs=1e-5):
    for answer, other in zip(answers, others, strict=True):
        assert (answer.answer, answer.start, answer.end) == (other.answer, other.start, other.end)
        assert answer.score == pytest.approx(other.score, abs=abs)


def test_the_threshold_is_tuned_where_some_have_an_answer_and_some_have_none():
    task, meter = QuestionAnswering(unanswerable=True), AnswerMeter()
    for text, gold, no_answer in [("a", ["a"], 1.0), ("b", ["b"], 2.0), ("c", [], 3.0), ("d", ["d"], -1.0)]:
        meter.add(text, gold, no_answer)
    assert task.tuned(meter) == replace(task, threshold=2.0)
    assert QuestionAnswering().tuned(meter) == QuestionAnswering()
    alone = AnswerMeter()
    alone.add("a", ["a"], 1.0)
    assert task.tuned(alone) == task


def test_a_tokenizer_that_counts_the_space_before_a_word(small, task, questions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words = train_tokenizer_from_texts([record.context for record in questions], kind="bpe", size=600)
    examples = task.examples(questions, Preprocessing(words, small.preprocessing().config), labeled=True)
    for row, record in enumerate(questions):
        inputs = examples.take([row])
        start, end = int(inputs["start"]), int(inputs["end"])
        if record.answers:
            shown = record.context[int(inputs["begin"][start]) : int(inputs["finish"][end])]
            assert shown.strip() == record.answers[0].text


def test_loss_and_gradients_are_those_of_transformers(small, family, task, questions, tmp_path):
    """Their loss lets padding be an answer; here it is told that it is none."""

    def theirs(model, padded, inputs):
        output, real = model(**padded), padded["attention_mask"].bool()
        sides = ((output.start_logits, "start"), (output.end_logits, "end"))
        losses = [
            torch.nn.functional.cross_entropy(logits.masked_fill(~real, float("-inf")), inputs[name])
            for logits, name in sides
        ]
        return sum(losses) / 2

    small.agree(task, questions, family, "ForQuestionAnswering", tmp_path, theirs)


def test_without_padding_it_is_their_own_loss(small, family, task, questions, tmp_path):
    record = questions[0]
    records = [record, replace(record, answers=()), replace(record, answers=(Gold("Monday", 27),))]

    def theirs(model, padded, inputs):
        assert padded["attention_mask"].all()
        return model(**padded, start_positions=inputs["start"], end_positions=inputs["end"]).loss

    small.agree(task, records, family, "ForQuestionAnswering", tmp_path, theirs)


def test_twenty_steps(small, task, questions):
    assert small.golden(task, questions) == pytest.approx(GOLDEN, abs=1e-4)


def test_it_learns_its_sample_by_heart(small, tmp_path):
    records = list(read(samples.path("questions")))[:12]
    task, result = small.learned(records, "answer", tmp_path, size=300, steps=60, batch_size=6, lr=5e-3)
    assert task.unanswerable
    assert result.scores["f1"].value >= 0.8
    assert result.scores["has_answer_f1"].value >= 0.75


def test_a_training_tunes_the_threshold(small, tmp_path):
    """The folder answers with what did best on dev, and its scores say so."""
    records = list(read(samples.path("questions")))[:40]
    task, _ = small.learned(records, "answer", tmp_path, size=300, steps=2, dev_fraction=0.4, lr=1e-3)
    assert task.threshold != 0
    stored = json.loads((tmp_path / "out" / "run.json").read_text())
    assert stored["task_settings"]["threshold"] == task.threshold
    assert stored["scores"]["f1"]["value"] == stored["scores"]["best_f1"]["value"]
