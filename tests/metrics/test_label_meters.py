"""Meters of labels and sets of labels are those of scikit-learn, with intervals that hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from regard.metrics import scores
from regard.metrics.meter import (
    LabelMeter,
    MultiLabelMeter,
)


def test_few_rows_that_are_all_right_leave_room_for_errors() -> None:
    meter = LabelMeter(["a", "b"])
    meter.add_many([0, 1] * 6, [0, 1] * 6)
    result = meter.scores()
    low = result["accuracy"].low
    assert low == pytest.approx(0.7575, abs=1e-4)
    assert {name: (score.value, score.high) for name, score in result.items()} == dict.fromkeys(result, (1.0, 1.0))
    assert [result[name].low for name in ("macro_f1", "f1", "mcc")] == pytest.approx([low, low, 2 * low - 1])


def test_rare_labels_that_are_all_right_are_less_certain() -> None:
    """With the same accuracy, errors of frequent labels take more of the precision of a rare one."""
    meter = LabelMeter(["a", "b", "never"])
    meter.add_many([0] * 95 + [1] * 5, [0] * 95 + [1] * 5)
    result = meter.scores()
    assert result["macro_f1"].low < result["accuracy"].low < 1
    one = LabelMeter(["a", "b"])
    one.add_many([0] * 10, [0] * 10)
    assert one.scores()["macro_f1"].low == 1.0  # the only label: nothing is known of the other


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_labels(rows: list[tuple[int, int]]) -> None:
    three, two = LabelMeter(["a", "b", "c"], main="macro_f1"), LabelMeter(["a", "b"])
    three.add_many(*np.array(rows).T)
    predicted, gold = np.minimum(np.array(rows), 1).T
    for ours, theirs in zip(predicted, gold, strict=True):
        two.add(int(ours), "ab"[theirs])
    result = three.scores()
    assert list(result) == ["macro_f1", "accuracy"]
    macro = oracle.f1_score([gold for _, gold in rows], [ours for ours, _ in rows], average="macro", zero_division=0)
    assert result["macro_f1"].value == pytest.approx(macro)
    result = two.scores()
    assert list(result) == ["accuracy", "macro_f1", "f1", "mcc"]
    assert result["f1"].value == pytest.approx(oracle.f1_score(gold, predicted, zero_division=0))
    assert result["accuracy"].value == pytest.approx((gold == predicted).mean())


def test_intervals_of_labels_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    chances = np.array([[0.4, 0.1, 0.05], [0.05, 0.2, 0.02], [0.03, 0.05, 0.1]])
    truth = scores.LabelCounts.of_table(chances).macro().f1
    hits = 0
    for _ in range(100):
        cells = random.choice(9, 400, p=chances.ravel())
        meter = LabelMeter(["a", "b", "c"])
        meter.add_many(cells % 3, cells // 3)
        result = meter.scores()["macro_f1"]
        hits += result.low <= truth <= result.high
    assert 89 <= hits <= 100


def test_sets_of_labels() -> None:
    random = np.random.default_rng(1)
    gold = random.random((3000, 40)) < 0.05
    predicted = gold ^ (random.random(gold.shape) < 0.01)
    names = [f"label{number}" for number in range(40)]
    meter, one_by_one = MultiLabelMeter(names), MultiLabelMeter(names)
    meter.add_many(predicted, gold)
    for ours, theirs in zip(predicted, gold, strict=True):
        one_by_one.add([names[number] for number in np.flatnonzero(ours)], np.flatnonzero(theirs).tolist())
    result = meter.scores()
    assert one_by_one.scores() == result
    for name in ("micro", "macro"):
        expected = oracle.f1_score(gold.astype(int), predicted.astype(int), average=name, zero_division=0)
        assert result[f"{name}_f1"].value == pytest.approx(expected)
        assert 0.003 < result[f"{name}_f1"].high - result[f"{name}_f1"].low < 0.05
    assert result["exact"].value == pytest.approx(scores.subset_accuracy(predicted, gold))
    assert meter.counts().f1.shape == (40,)
    none = MultiLabelMeter(names)
    none.add([], [])
    assert [score.value for score in none.scores().values()] == [0, 0, 1]
