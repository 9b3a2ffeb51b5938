"""Labels and numbers of texts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard import samples
from regard.data.readers import read
from regard.data.records import ClassifyRecord
from regard.metrics.meter import LabelMeter, MultiLabelMeter, NumberMeter
from regard.tasks.classify import Classify, LabelAnswer, LabelsAnswer, NumberAnswer

GOLDEN = [1.09862, 1.09864, 1.09496, 1.10604, 1.0615, 1.26284, 1.08842, 1.10362, 1.10246, 1.05294]
GOLDEN += [1.11176, 1.03225, 1.26947, 1.0601, 1.10676, 1.10513, 1.03657, 1.1133, 1.02078, 1.26536]
LABELS: dict[str, list[Any]] = {
    "single": ["a", "b", "c", "a", "b", "b", "a"],
    "multi": [("a",), ("a", "b"), (), ("b", "c"), ("c",), (), ("a", "b", "c")],
    "number": [0.5, -1.0, 2.0, 0.0, 4.5, 1.0, 3.0],
}
KINDS = tuple(LABELS)


@pytest.fixture
def labeled(texts):
    def make(kind):
        return [replace(record, label=label) for record, label in zip(texts, LABELS[kind], strict=True)]

    return make


@pytest.mark.parametrize(
    ("kind", "names", "size", "problem", "meter"),
    [
        ("single", ("a", "b", "c"), 3, "single_label_classification", LabelMeter),
        ("multi", ("a", "b", "c"), 3, "multi_label_classification", MultiLabelMeter),
        ("number", (), 1, "regression", NumberMeter),
    ],
)
def test_its_kind_is_that_of_the_labels(labeled, kind, names, size, problem, meter):
    task = Classify.from_records(labeled(kind))
    assert (task.kind, task.names) == (kind, names)
    assert (task.heads, task.problem_type) == ({"sequence": size}, problem)
    assert task.labels == (None if kind == "number" else names)
    assert isinstance(task.meter(), meter)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients_are_those_of_transformers(small, family, labeled, kind, tmp_path):
    records = labeled(kind)

    def theirs(model, padded, inputs):
        return model(**padded, labels=inputs["label"]).loss

    small.agree(Classify.from_records(records), records, family, "ForSequenceClassification", tmp_path, theirs)


@pytest.mark.parametrize(
    "settings",
    [{"class_balance": "weights"}, {"label_smoothing": 0.2}, {"class_balance": "weights", "label_smoothing": 0.2}],
)
def test_weights_and_smoothing_are_those_of_torch(small, labeled, settings, tmp_path):
    records = labeled("single")
    task = Classify.from_records(records, **settings)
    assert task.label_smoothing == settings.get("label_smoothing", 0.0)
    weights = None
    if "class_balance" in settings:
        assert task.weights == pytest.approx((7 / 9, 7 / 9, 7 / 3))
        weights = torch.tensor(task.weights)

    def theirs(model, padded, inputs):
        logits = model(**padded).logits
        return F.cross_entropy(logits, inputs["label"], weight=weights, label_smoothing=task.label_smoothing)

    small.agree(task, records, "bert", "ForSequenceClassification", tmp_path, theirs)


def test_texts_with_a_rare_label_weigh_as_much_as_those_without(small, labeled, tmp_path):
    records = [replace(record, label=("a", "b") if record.label else ()) for record in labeled("multi")]
    task = Classify.from_records(records[:5], class_balance="weights")
    assert task.weights == pytest.approx((1 / 4, 1 / 4))

    def theirs(model, padded, inputs):
        weights = torch.tensor(task.weights)
        return F.binary_cross_entropy_with_logits(model(**padded).logits, inputs["label"], pos_weight=weights)

    small.agree(task, records, "bert", "ForSequenceClassification", tmp_path, theirs)


def test_the_windows_of_a_text_weigh_as_much_as_one(small, labeled, longer):
    records = [longer(labeled("single")[0]), labeled("single")[1]]
    task = Classify(names=("a", "b", "c"))
    examples = task.examples(records, small.preprocessing(window=24), labeled=True)
    loss = small.run(task, small.spread(task), examples.take(range(len(examples))))
    assert loss.count.item() == pytest.approx(2)
    shares = np.bincount(examples.owners, weights=examples.by_sequence["weight"])
    assert shares == pytest.approx([1, 1])


def window_logits(*windows):
    return [np.array(window, np.float32) for window in windows]


def test_the_most_likely_label_of_all_windows():
    answer = Classify(names=("a", "b")).answer(ClassifyRecord("x"), window_logits([1.0, 0.0], [0.0, 3.0]))
    assert isinstance(answer, LabelAnswer)
    chance = torch.tensor([0.5, 1.5]).softmax(0)[1].item()
    assert (answer.label, answer.windows) == ("b", 2)
    assert answer.score == pytest.approx(chance)
    assert answer.scores is not None
    assert list(answer.scores) == ["b", "a"]
    assert sum(answer.scores.values()) == pytest.approx(1)


def test_every_label_that_is_likely():
    answer = Classify(kind="multi", names=("a", "b", "c")).answer(ClassifyRecord("x"), window_logits([1.0, -1.0, 0.1]))
    assert isinstance(answer, LabelsAnswer)
    assert answer.labels == ("a", "c")
    assert answer.json()["labels"] == ["a", "c"]


def test_a_number():
    answer = Classify(kind="number").answer(ClassifyRecord("x"), window_logits([1.0], [2.0]))
    assert isinstance(answer, NumberAnswer)
    assert answer.value == 1.5


def test_twenty_steps(small, texts):
    assert small.golden(Classify.from_records(texts), texts) == pytest.approx(GOLDEN, abs=1e-4)


def test_it_learns_its_sample_by_heart(small, tmp_path):
    records = list(read(samples.path("messages")))[:60]
    task, result = small.learned(records, "classify", tmp_path, size=400, steps=260, batch_size=12, lr=4e-3)
    assert len(task.names) == 6
    assert result.scores["accuracy"].value >= 0.8


def test_several_labels_are_learned(small, tmp_path):
    rows = [("good morning", ("a",)), ("the lazy dog", ("a", "b")), ("how odd", ()), ("wizards sleep", ("b",))]
    records = [ClassifyRecord(text, label) for text, label in rows * 4]
    task, result = small.learned(records, "classify", tmp_path, size=60, steps=40, lr=1e-2)
    assert task.kind == "multi"
    assert result.value >= 0.95


def test_the_note_on_scores_names_the_label_of_f1() -> None:
    assert Classify(names=("bad", "good")).score_note == 'f1 is that of the label "good".'
    assert Classify(names=("a", "b", "c")).score_note == Classify(kind="number").score_note == ""
    assert Classify(kind="multi", names=("a", "b")).score_note == ""
