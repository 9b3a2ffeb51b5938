"""Scores of each class and confusion matrices are those of scikit-learn and seqeval."""

from __future__ import annotations

import json
import warnings
from itertools import chain
from typing import Any

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import classification_report as seqeval_report
from seqeval.scheme import IOB2
from sklearn.metrics import classification_report, confusion_matrix, multilabel_confusion_matrix

from regard.metrics.meter import AnswerMeter, EntityMeter, LabelMeter, MultiLabelMeter, NumberMeter, TokenMeter
from regard.metrics.report import ClassificationReport, ClassScore, ConfusionMatrix, MultilabelConfusion, report_of

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG")


def sklearn_report(gold: Any, predicted: Any, **settings: Any) -> dict[str, Any]:
    result = classification_report(gold, predicted, output_dict=True, zero_division=0, **settings)
    assert isinstance(result, dict)
    return result


def same(ours: ClassScore, theirs: dict[str, float]) -> None:
    assert (ours.precision, ours.recall, ours.f1) == pytest.approx(
        (theirs["precision"], theirs["recall"], theirs["f1-score"])
    )
    assert ours.support == theirs["support"]


@pytest.mark.parametrize("classes", [2, 7, 250])
def test_single_labels_as_in_scikit_learn(classes: int) -> None:
    draw = np.random.default_rng(classes)
    gold = draw.integers(0, classes, 3000) ** 2 // classes  # imbalanced; some classes are rare or absent
    predicted = np.where(draw.random(3000) < 0.7, gold, draw.integers(0, classes, 3000))
    names = [f"class {number:03}" for number in range(classes)]
    meter = LabelMeter(names)
    for ours, theirs in zip(predicted.tolist(), gold.tolist(), strict=True):
        meter.add(ours, theirs)
    report = meter.report()
    assert isinstance(report.confusion, ConfusionMatrix)
    theirs = sklearn_report(gold, predicted, labels=range(classes), target_names=names)
    for name in names:
        same(report.classes[name], theirs[name])
    same(report.averages["weighted"], theirs["weighted avg"])
    present = sklearn_report(gold, predicted)  # the macro mean is over classes that occur
    same(report.averages["macro"], present["macro avg"])
    expected = confusion_matrix(gold, predicted, labels=range(classes))
    assert np.array_equal(report.confusion.matrix(), expected)
    worst = report.confusion.most_confused(1)[0]
    wrong = expected - np.diag(np.diagonal(expected))
    assert worst.count == wrong.max()
    assert expected[names.index(worst.true), names.index(worst.predicted)] == worst.count


def test_several_labels_as_in_scikit_learn() -> None:
    draw = np.random.default_rng(1)
    names = ["billing", "login", "delivery", "refund"]
    gold = draw.random((2000, 4)) < [0.5, 0.2, 0.1, 0.0]
    predicted = gold ^ (draw.random((2000, 4)) < 0.1)
    meter = MultiLabelMeter(names)
    meter.add_many(predicted, gold)
    report = meter.report()
    theirs = sklearn_report(gold, predicted, target_names=names)
    for name in names:
        same(report.classes[name], theirs[name])
    for average in ("micro", "macro", "weighted"):
        same(report.averages[average], theirs[f"{average} avg"])
    assert isinstance(report.confusion, MultilabelConfusion)
    assert np.array_equal(report.confusion.tables, multilabel_confusion_matrix(gold, predicted))


def tag_rows(count: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Random tags, many of them no good IOB2."""
    draw = np.random.default_rng(seed)
    rows = [draw.choice(TAGS, size=draw.integers(1, 20)).tolist() for _ in range(count)]
    others = [[tag if draw.random() < 0.7 else str(draw.choice(TAGS)) for tag in row] for row in rows]
    return rows, others


def test_entities_as_in_seqeval() -> None:
    gold, predicted = tag_rows(400, seed=2)
    meter = EntityMeter()
    for ours, theirs in zip(predicted, gold, strict=True):
        meter.add(ours, theirs)
    report = meter.report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = seqeval_report(gold, predicted, mode="strict", scheme=IOB2, output_dict=True)
    assert list(report.classes) == ["LOC", "ORG", "PER"]
    for name, score in report.classes.items():
        same(score, theirs[name])
    for average in ("micro", "macro", "weighted"):
        same(report.averages[average], theirs[f"{average} avg"])
    assert isinstance(report.confusion, ConfusionMatrix)
    assert report.confusion.labels == ("LOC", "ORG", "PER", "O")
    matrix = report.confusion.matrix()
    assert matrix[:3].sum(1).tolist() == [score.support for score in report.classes.values()]
    assert matrix[3, 3] == 0


def test_boundaries_decide_which_entities_are_compared() -> None:
    meter = EntityMeter()
    meter.add(["B-LOC", "I-LOC", "O", "B-PER", "O"], ["B-ORG", "I-ORG", "O", "B-PER", "I-PER"])
    report = meter.report()
    assert isinstance(report.confusion, ConfusionMatrix)
    pairs = {(pair.true, pair.predicted): pair.count for pair in report.confusion.most_confused()}
    assert pairs == {("ORG", "LOC"): 1, ("PER", "O"): 1, ("O", "PER"): 1}


def test_tags_of_words_as_in_scikit_learn() -> None:
    draw = np.random.default_rng(3)
    gold = [draw.choice(["NOUN", "VERB", "ADJ"], size=9).tolist() for _ in range(50)]
    predicted = [draw.choice(["NOUN", "VERB", "ADJ"], size=9).tolist() for _ in range(50)]
    meter = TokenMeter()
    for ours, theirs in zip(predicted, gold, strict=True):
        meter.add(ours, theirs)
    report = meter.report()
    flat_gold, flat_predicted = list(chain(*gold)), list(chain(*predicted))
    theirs = sklearn_report(flat_gold, flat_predicted)
    for name in ("ADJ", "NOUN", "VERB"):
        same(report.classes[name], theirs[name])
    assert isinstance(report.confusion, ConfusionMatrix)
    assert np.array_equal(report.confusion.matrix(), confusion_matrix(flat_gold, flat_predicted))


def test_questions_without_an_answer() -> None:
    meter = AnswerMeter()
    meter.add("Paris", ["Paris"], -3.0)
    meter.add("Rome", ["Paris"], 4.0)  # left unanswered
    meter.add("Oslo", [], -1.0)
    meter.add("Bern", [], 2.0)
    meter.add("Bonn", [], 2.0)
    report = meter.report()
    assert isinstance(report.confusion, ConfusionMatrix)
    assert report.confusion.labels == ("answer", "no answer")
    assert report.confusion.matrix().tolist() == [[1, 1], [1, 2]]
    assert report.classes["no answer"].recall == pytest.approx(2 / 3)
    alone = AnswerMeter()
    alone.add("Paris", ["Paris"])
    assert alone.report().classes == {}


def test_tasks_without_classes_have_an_empty_report() -> None:
    assert report_of(NumberMeter()) == ClassificationReport()
    assert ClassificationReport().json() == {}
    assert EntityMeter().report().classes == {}


def test_json_stays_small_with_many_classes() -> None:
    meter = LabelMeter([f"c{number}" for number in range(1000)])
    draw = np.random.default_rng(4)
    meter.add_many(draw.integers(0, 1000, 5000), draw.integers(0, 1000, 5000))
    content = json.loads(json.dumps(meter.report().json()))
    assert content["confusion"]["matrix"] is None
    assert len(content["confusion"]["most_confused"]) == 20
    assert len(content["classes"]) == 1000
