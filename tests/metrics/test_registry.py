"""A metric of one's own is one function and one registry entry, and then appears everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.errors import InputError
from regard.metrics.confidence import Score
from regard.metrics.language_meters import BidirectionalMeter, MaskedCounts, MaskedMeter, PreferenceMeter
from regard.metrics.meter import (
    AnswerMeter,
    EntityMeter,
    LabelMeter,
    MultiLabelMeter,
    NumberMeter,
    PerplexityMeter,
    TokenMeter,
)
from regard.metrics.registry import METRICS, Metric, metric_table, register_metric, unregister_metric
from regard.metrics.scores import LabelCounts, ratio

DOCS = Path(__file__).parents[2] / "docs" / "evaluate.md"


def same_first_letter(predicted: str, gold: str) -> float:
    return float(predicted[:1] == gold[:1])


FIRST_LETTER = Metric(
    "first_letter", "label", "fraction of labels with the right first letter", score=same_first_letter
)


def balanced_accuracy(counts: LabelCounts) -> Any:
    present = counts.gold > 0
    return ratio((counts.recall * present).sum(-1), present.sum(-1))


@contextmanager
def registered(metric: Metric) -> Iterator[None]:
    register_metric(metric)
    try:
        yield
    finally:
        unregister_metric(metric)


@pytest.fixture
def first_letter() -> Iterator[Metric]:
    with registered(FIRST_LETTER):
        yield FIRST_LETTER


def test_toy_metrics_are_computed_by_evaluate_and_train_and_shown_in_the_card(
    first_letter: Metric, reviews_csv: Path, tmp_path: Path
) -> None:
    """One of single predictions, and one of counts."""
    with registered(Metric("balanced", "label", "mean recall", from_counts=balanced_accuracy)):
        trained = regard.train(reviews_csv, preset="tiny-bert", out=tmp_path / "run", steps=2)
        evaluation = regard.evaluate(trained.folder, reviews_csv)
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    for name in (first_letter.name, "balanced"):
        assert name in trained.scores
        assert name in evaluation.scores
        assert name in card
    score = evaluation.scores[first_letter.name]
    assert score.value == evaluation.scores["accuracy"].value  # the labels are good and bad
    assert 0 <= score.low <= score.value <= score.high <= 1


def test_a_toy_metric_is_in_the_table_of_the_docs(first_letter: Metric) -> None:
    assert f"| label | `first_letter` | {first_letter.description} | higher |" in metric_table()


def test_the_docs_show_the_table() -> None:
    assert metric_table() in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "meter", "predicted", "gold"),
    [
        ("label", lambda: LabelMeter(["a", "b"]), "a", "b"),
        ("labels", lambda: MultiLabelMeter(["a", "b"]), ["a"], ["b"]),
        ("number", NumberMeter, 1.0, 2.5),
        ("entities", EntityMeter, ["B-x", "O"], ["O", "O"]),
        ("tags", TokenMeter, ["x", "y"], ["x", "x"]),
        ("answer", AnswerMeter, "this", ["that"]),
    ],
)
def test_every_kind_of_prediction_reaches_its_metric(kind, meter, predicted, gold) -> None:  # type: ignore[no-untyped-def]
    received = []

    def score(*pair: object) -> float:
        received.append(pair)
        return len(received)

    with registered(Metric("toy", kind, "a toy", score=score)):
        counted = meter()
        counted.add(predicted, gold)
        counted.add(predicted, gold)
        assert received == [(predicted, gold)] * 2 or kind == "labels"
        assert counted.scores()["toy"].value == 1.5
        assert next(iter(counted.scores())) != "toy"


def test_blocks_of_rows_reach_a_metric_too(first_letter: Metric) -> None:
    meter = LabelMeter(["good", "bad", "bald"])
    meter.add_many(np.array([0, 1, 2]), np.array([0, 2, 0]))
    assert meter.scores()["first_letter"].value == pytest.approx(2 / 3)


def test_every_score_of_a_meter_is_described() -> None:
    def scores_of(meter, *pairs) -> dict[str, Score]:  # type: ignore[no-untyped-def]
        for pair in pairs:
            meter.add(*pair)
        return meter.scores()

    two = LabelMeter(["a", "b"])
    results = {
        "label": scores_of(two, ("a", "a"), ("a", "b")),
        "labels": scores_of(MultiLabelMeter(["a", "b"]), (["a"], ["b"])),
        "number": scores_of(NumberMeter(), (1.0, 2.0), (2.0, 3.0)),
        "entities": scores_of(EntityMeter(), (["B-x"], ["B-x"])),
        "tags": scores_of(TokenMeter(), (["x"], ["x"])),
        "answer": scores_of(AnswerMeter(), ("a", ["a"], -1.0), ("b", [], 1.0)),
        "masked tokens": scores_of(MaskedMeter(), (MaskedCounts(1, 2, 0.5, True),)),
        "next token": scores_of(PerplexityMeter(), (1.0, 2, 6, 1)),
        "both directions": scores_of(BidirectionalMeter(), ((1.0, 2.0), (2, 2))),
        "sentence pair": scores_of(PreferenceMeter(), (True, None)),
    }
    for kind, scores in results.items():
        assert set(scores) == {metric.name for metric in METRICS if metric.kind == kind}, kind


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: register_metric(Metric("new", "label", "no function")), "has no function"),
        (lambda: register_metric(Metric("accuracy", "label", "twice", score=same_first_letter)), "exists already"),
        (lambda: Metric("new", "number", "no labels", from_counts=balanced_accuracy), "expected one of: label, labels"),
        (
            lambda: Metric("new", "label", "two", score=same_first_letter, from_counts=balanced_accuracy),
            "both score and from_counts",
        ),
        (lambda: Metric("new", "colour", "of no kind", score=same_first_letter), "expected one of: label"),
    ],
)
def test_what_is_no_metric_is_refused(make, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=re.escape(message)):
        make()


def test_a_value_that_is_not_finite_is_refused() -> None:
    broken = Metric("broken", "number", "not a number", score=lambda predicted, gold: math.nan)
    with registered(broken), pytest.raises(InputError, match='"broken" returned nan'):
        NumberMeter().add(1.0, 2.0)


def test_a_metric_from_counts_equals_scikit_learn() -> None:
    from sklearn.metrics import balanced_accuracy_score

    gold, predicted = np.random.default_rng(0).choice(3, (2, 300), p=(0.7, 0.25, 0.05))
    predicted = np.where(np.arange(300) % 3 == 0, predicted, gold)
    with registered(Metric("balanced", "label", "mean recall", from_counts=balanced_accuracy)):
        meter = LabelMeter(["a", "b", "c", "never"])
    for ours, theirs in zip(predicted, gold, strict=True):
        meter.add(int(ours), int(theirs))
    score = meter.scores()["balanced"]
    assert score.value == pytest.approx(balanced_accuracy_score(gold, predicted))
    rows = np.random.default_rng(1).integers(0, 300, (400, 300))
    low, high = np.quantile([balanced_accuracy_score(gold[row], predicted[row]) for row in rows], (0.025, 0.975))
    assert (score.low, score.high) == pytest.approx((low, high), abs=0.02)


def test_a_metric_from_counts_of_several_labels_equals_scikit_learn() -> None:
    from sklearn.metrics import recall_score

    gold, predicted = np.random.default_rng(0).random((2, 200, 3)) < 0.4
    with registered(Metric("macro_recall", "labels", "mean recall", from_counts=lambda counts: counts.recall.mean(-1))):
        meter = MultiLabelMeter(["a", "b", "c"])
    meter.add_many(predicted, gold)
    score = meter.scores()["macro_recall"]
    assert score.value == pytest.approx(recall_score(gold, predicted, average="macro"))
    assert score.value - 0.15 < score.low < score.value < score.high < score.value + 0.15


@pytest.mark.parametrize(
    ("from_counts", "message"),
    [
        (lambda counts: counts.recall, "shape (1000, 2) for counts of shape (1000, 2); expected shape (1000,)"),
        (lambda counts: counts.hits.sum(), "Sum over the last axis alone"),
        (lambda counts: np.nan * counts.hits.sum(-1), "returned nan"),
    ],
)
def test_what_a_metric_from_counts_returns_is_checked(from_counts: Any, message: str) -> None:
    with registered(Metric("broken", "label", "wrong shape", from_counts=from_counts)):
        meter = LabelMeter(["a", "b"])
    meter.add("a", "b")
    with pytest.raises(InputError, match=re.escape(message)):
        meter.scores()
