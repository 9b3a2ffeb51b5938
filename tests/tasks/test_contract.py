"""What every task keeps to. A new task adds a row to `ROWS`; nothing else here knows it by name."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.answers import assert_same

from regard.data.records import (
    AnswerRecord,
    ClassifyRecord,
    DocumentRecord,
    PairRecord,
    Place,
    TagRecord,
    TranslateRecord,
)
from regard.data.records import AnswerSpan as Gold
from regard.errors import DataError
from regard.tasks import TASKS, task_class
from regard.tasks.task import plain

PLACE = Place("dev.csv", line=7)


@dataclass(frozen=True)
class Row:
    """`records` names a fixture; the rest says what is to be changed in one of them."""

    records: str
    change: Any = None  # of the labels of a record by its number
    bad: tuple[str, Any] | None = ("label", None)  # a field that holds what the training data never had
    blank: tuple[str, Any] | None = ("label", None)  # a field that is empty where nobody has labeled it
    make: Any = None  # a record without labels from two texts
    settings: Any = None  # settings it is trained with
    random_targets: bool = False  # whether the targets of a batch are sampled each time
    batch_fields: tuple[str, ...] = ()  # fields of an answer that depend on the other records of its batch


def _labels(labels):
    return lambda record, row: replace(record, label=labels[row % len(labels)])


ROWS = {
    "classify": Row("texts", bad=("label", "d"), make=lambda one, two: ClassifyRecord(one)),
    "classify multi": Row("texts", _labels([("a",), (), ("a", "b")]), ("label", ("a", "d"))),
    "classify number": Row("texts", _labels([1.0, -2.5, 0.0]), ("label", "many")),
    "pair": Row("pairs", bad=("label", "d"), make=PairRecord),
    "tag": Row(
        "tagged",
        bad=("tags", ("B-TIME",) * 8),
        blank=("tags", None),
        make=lambda one, two: TagRecord.from_text(one),
    ),
    "tag words": Row(
        "tagged",
        lambda record, row: replace(record, tags=tuple(f"{len(word) % 3}" for word in record.tokens)),
        ("tags", ("9",) * 8),
        ("tags", None),
    ),
    "answer": Row(
        "questions", bad=("answers", None), blank=("answers", None), make=lambda one, two: AnswerRecord("", one, two)
    ),
    "answer always": Row(
        "questions",
        lambda record, row: replace(record, answers=record.answers or (Gold(record.context[4:8], 4),)),
        ("answers", None),
        ("answers", None),
    ),
    "translate": Row(
        "translations", bad=("target", " "), blank=("target", ""), make=lambda one, two: TranslateRecord(one, "")
    ),
    "masked": Row("documents", bad=None, blank=None, make=lambda one, two: DocumentRecord(one), random_targets=True),
    "masked word": Row("documents", bad=None, blank=None, settings={"unit": "word"}, random_targets=True),
    "causal": Row("documents", bad=None, blank=None, make=lambda one, two: DocumentRecord(one)),
    "bidirectional": Row("documents", bad=None, blank=None, make=lambda one, two: DocumentRecord(one)),
    "embed": Row("pairs", _labels([None]), bad=None, blank=None, make=PairRecord, batch_fields=("is_nearest",)),
    "embed number": Row("pairs", _labels([1.0, 5.0, 2.5]), ("label", "many"), blank=None),
}
NAMES = tuple(ROWS)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def records_of(name, request):
    change = ROWS[name].change or (lambda record, row: record)
    return [change(record, row) for row, record in enumerate(request.getfixturevalue(ROWS[name].records))]


@pytest.fixture
def records(name, request):
    return records_of(name, request)


@pytest.fixture
def kind(name):
    return task_class(name.split()[0])


@pytest.fixture
def task_settings(name, small):
    return {"tokenizer": small.tokenizer, **(ROWS[name].settings or {})}


@pytest.fixture
def task(kind, records, task_settings):
    return kind.from_records(records, **task_settings)


@pytest.fixture
def network(small, task):
    return small.spread(task)


@pytest.fixture
def unlabeled(name, records):
    blank = ROWS[name].blank
    if blank is None:
        return records
    field, value = blank
    return [replace(record, **{field: value}) for record in records]


def same(ours, theirs):
    assert_same(ours, theirs, abs=1e-4)


def test_every_task_has_a_row():
    assert {name.split()[0] for name in ROWS} == set(TASKS)


def test_the_folder_keeps_it(task, kind):
    stored = json.loads(json.dumps(task.settings()))
    assert kind.from_settings(stored) == task
    assert json.loads(json.dumps(kind.from_settings(stored).settings())) == stored


def test_learning_takes_one_pass(task, kind, records, task_settings):
    assert kind.from_records(iter(records), **task_settings) == task
    assert kind.from_records(iter(records), **task_settings, class_balance="none", label_smoothing=0.0) == task


def test_its_names_are_those_of_its_classes(task):
    assert task.labels is None or [len(task.labels)] == list(task.heads.values())


def test_the_loss_is_a_sum_and_a_count(small, task, network, records):
    examples = task.examples(records, small.preprocessing(), labeled=True)
    assert examples.owners.tolist() == list(range(len(records)))
    loss = small.run(task, network, examples.take(range(len(examples))))
    assert loss.sum.shape == loss.count.shape == ()
    assert loss.sum.dtype == loss.count.dtype == torch.float32
    assert torch.isfinite(loss.sum)
    assert loss.count > 0
    loss.sum.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


def test_a_batch_is_the_sum_of_its_sequences(small, task, name, network, records):
    if ROWS[name].random_targets or not task.can_split:
        pytest.skip("the targets of a batch are sampled, or are how its rows differ")
    examples = task.examples(records, small.preprocessing(), labeled=True)
    together = small.run(task, network, examples.take(range(len(examples))))
    alone = [small.run(task, network, examples.take([row])) for row in range(len(examples))]
    for part in ("sum", "count"):
        parts = sum(getattr(loss, part).item() for loss in alone)
        assert getattr(together, part).item() == pytest.approx(parts, rel=1e-5)


def test_fixed_shapes_give_the_same_loss_and_gradients(small, task, name, network, records):
    inputs = task.examples(records, small.preprocessing(), labeled=True).take(range(len(records)))
    if ROWS[name].random_targets or not task.fixed_shapes:
        pytest.skip("the targets of a batch are sampled, or the task has no fixed shape")
    results = []
    for batch in (inputs, inputs.fixed(tokens=512, sequences=24, max_length=64)):
        network.zero_grad()
        loss = small.run(task, network, batch)
        loss.sum.backward()
        gradients = [parameter.grad.clone() for parameter in network.parameters()]
        results.append((loss.sum.item(), loss.count.item(), gradients))
    ours, fixed = results
    assert ours[:2] == pytest.approx(fixed[:2], rel=1e-5)
    for one, other in zip(ours[2], fixed[2], strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_fixed_shape_is_read_like_its_batch(small, task, name, network, records):
    inputs = task.examples(records, small.preprocessing(), labeled=False).take(range(len(records)))
    if ROWS[name].random_targets or not task.fixed_shapes:
        pytest.skip("the targets of a batch are sampled, or the task has no fixed shape")
    messages = []
    for batch in map(task.prepare, (inputs, inputs.fixed(tokens=512, sequences=24, max_length=64))):
        with torch.inference_mode():
            messages.append(task.row_outputs(network(batch.tokens, at=batch.at), batch))
    assert len(messages[0]) == len(messages[1]) == len(records)
    for record, one, other in zip(records, *messages, strict=True):
        same(task.answer(record, [one]).json(), task.answer(record, [other]).json())


def test_class_probabilities_have_the_weights_of_the_loss(small, task, name, network, records):
    if not task.predicts_classes:
        pytest.skip("the task predicts no classes")
    examples = task.examples(records, small.preprocessing(), labeled=True)
    inputs = task.prepare(examples.take(range(len(examples))).twice())
    output = network(inputs.tokens, inputs.target, at=inputs.at)
    log_probabilities, weights = task.log_probabilities(output, inputs)
    assert torch.allclose(log_probabilities.exp().sum(1), torch.ones(len(weights)), atol=1e-5)
    assert weights.sum().item() == pytest.approx(task.loss(output, inputs).count.item(), rel=1e-5)
    one, two = log_probabilities.chunk(2)
    assert torch.allclose(one, two, atol=1e-4)
    assert torch.equal(*weights.chunk(2))


def test_a_blank_batch_counts_nothing(small, task, network, records):
    inputs = task.examples(records, small.preprocessing(), labeled=True).take(range(len(records)))
    loss = small.run(task, network, inputs.without_targets())
    assert (loss.sum.item(), loss.count.item()) == (0.0, 0.0)
    loss.sum.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters() if parameter.grad is not None)


def test_batched_answers_are_single_answers(small, task, name, network, records, unlabeled):
    together = small.answers(task, network, unlabeled)
    for record, labeled, answer in zip(unlabeled, records, together, strict=True):
        (alone,) = small.answers(task, network, [record])
        same(own(name, answer), own(name, alone))
        (again,) = small.answers(task, network, [labeled], labeled=True)
        same(own(name, answer), own(name, again))
        assert answer.windows == 1
        assert answer.truncated is False


def own(name, answer):
    """What an answer says of its own record; where words are hidden by lot, that is in how many windows it was read."""
    content = answer.json()
    if ROWS[name].random_targets:
        return {"windows": content["windows"], "truncated": content["truncated"]}
    return {field: value for field, value in content.items() if field not in ROWS[name].batch_fields}


def test_answers_are_json(small, task, network, unlabeled):
    for answer in small.answers(task, network, unlabeled):
        content = answer.json()
        assert json.loads(json.dumps(content)) == content
        assert list(content)[-2:] == ["truncated", "windows"]
        assert content == {name: json.loads(json.dumps(plain(getattr(answer, name)))) for name in content}


@pytest.mark.filterwarnings("ignore:.* too long to be learned from")
def test_long_records_are_read_in_windows(small, task, name, network, records, longer):
    record = longer(records[0])
    preprocessing = small.preprocessing(window=48)
    examples = task.examples([record, records[0]], preprocessing, labeled=True)
    assert examples.max_length <= 48
    long, short = small.answers(task, network, [record, records[0]], window=48)
    assert long.windows > 3
    assert short.windows == 1
    if examples.groups is None:
        assert np.bincount(examples.owners).tolist() == [long.windows, 1]
    else:  # sequences that stay together are one row
        assert examples.owners.tolist() == [0, 1]
    same(own(name, short), own(name, small.answers(task, network, [records[0]])[0]))
    check_places(long.json(), getattr(record, "text", None) or getattr(record, "context", ""))
    assert torch.isfinite(small.run(task, network, examples.take(range(len(examples)))).sum)


def check_places(message, text):
    """Whatever has a start and an end is the text that stands there."""
    if isinstance(message, dict):
        if message.get("start") is not None:
            shown = message["text"] if "text" in message else message["answer"]
            assert text[message["start"] : message["end"]] == shown != ""
        for value in message.values():
            check_places(value, text)
    elif isinstance(message, list):
        for value in message:
            check_places(value, text)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.bad])
def test_what_was_not_in_training_is_named_with_its_place(small, task, name, network, records):
    bad = ROWS[name].bad
    assert bad is not None
    field, value = bad
    wrong = replace(records[0], **{field: value}, place=PLACE)
    with pytest.raises(DataError, match=r"^dev\.csv line 7, column \w+: .*") as caught:
        task.examples([wrong], small.preprocessing(), labeled=True)
    assert caught.value.line == 7
    with pytest.raises(DataError, match=r"^dev\.csv line 7"):
        small.score(task, network, [records[0], wrong])


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.blank])
def test_rows_without_labels_cannot_be_learned_from(kind, unlabeled):
    rows = [replace(record, place=PLACE) for record in unlabeled]
    with pytest.raises(DataError, match=r"^dev\.csv line 7"):
        kind.from_records(rows)


def test_it_is_scored(small, task, network, records):
    result = small.score(task, network, records)
    assert result.rows == len(records)
    assert next(iter(result.scores)) == result.main
    assert np.isfinite(result.loss)
    tuned = task.tuned(result.meter)
    assert tuned.heads == task.heads


@pytest.mark.parametrize("plain", [name for name, row in ROWS.items() if row.make])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=st.text(max_size=60), two=st.text(max_size=8), window=st.integers(24, 40))
def test_any_text_is_answered(small, plain, request, one, two, window):
    row, kind = ROWS[plain], task_class(plain)
    task = kind.from_records(records_of(plain, request), tokenizer=small.tokenizer)
    network = small.spread(task)
    (answer,) = small.answers(task, network, [row.make(one, two)], window=window)
    check_places(answer.json(), one)
    assert json.loads(json.dumps(answer.json())) == answer.json()
