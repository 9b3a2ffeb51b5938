"""Scores agree with scikit-learn and scipy, for any labels and numbers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from sklearn import metrics as oracle

from regard.errors import InputError
from regard.metrics import scores

pairs = st.integers(1, 6).flatmap(
    lambda labels: st.tuples(
        st.just(labels),
        st.lists(st.tuples(st.integers(0, labels - 1), st.integers(0, labels - 1)), min_size=1, max_size=60),
    )
)
numbers = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=2, max_size=60)


@settings(deadline=None)
@given(pairs)
def test_labels_as_scikit_learn_has_them(case: tuple[int, list[tuple[int, int]]]) -> None:
    labels, rows = case
    predicted, gold = map(np.array, zip(*rows, strict=True))
    table = scores.confusion(predicted, gold, labels)
    counts = scores.LabelCounts.of_table(table)
    assert scores.accuracy(table) == pytest.approx(oracle.accuracy_score(gold, predicted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matthews = oracle.matthews_corrcoef(gold, predicted)
        expected = oracle.confusion_matrix(gold, predicted, labels=range(labels))
    assert (table == expected).all()
    assert scores.matthews_correlation(counts) == pytest.approx(matthews, abs=1e-12)
    each = oracle.precision_recall_fscore_support(gold, predicted, labels=range(labels), zero_division=0)
    for ours, theirs in zip((counts.precision, counts.recall, counts.f1, counts.support), each, strict=True):
        np.testing.assert_allclose(ours, theirs)
    for name, average in (("micro", counts.micro()), ("macro", counts.macro()), ("weighted", counts.weighted())):
        expected = oracle.precision_recall_fscore_support(gold, predicted, average=name, zero_division=0)
        np.testing.assert_allclose(average, expected[:3])


@settings(deadline=None)
@given(pairs)
def test_a_confusion_matrix_grows_by_parts(case: tuple[int, list[tuple[int, int]]]) -> None:
    labels, rows = case
    predicted, gold = map(np.array, zip(*rows, strict=True))
    result = scores.ConfusionCounts(labels)
    for start in range(0, len(rows), 7):
        result.add_many(predicted[start : start + 7], gold[start : start + 7])
    whole = scores.LabelCounts.of_table(scores.confusion(predicted, gold, labels))
    for name in ("hits", "predicted", "gold"):
        assert (getattr(result.counts(), name) == getattr(whole, name)).all()
    assert result.rows == len(rows)


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_sets_of_labels_as_scikit_learn_has_them(labels: int, rows: int, seed: int) -> None:
    predicted, gold = np.random.default_rng(seed).random((2, rows, labels)) < 0.4
    counts = scores.LabelCounts.of_sets(predicted, gold)
    assert scores.subset_accuracy(predicted, gold) == pytest.approx((predicted == gold).all(1).mean())
    ours, theirs = predicted.astype(int), gold.astype(int)
    if labels > 1:  # one column is read as labels 0 and 1 there
        micro = oracle.f1_score(theirs, ours, average="micro", zero_division=0)
        macro = oracle.f1_score(theirs, ours, average="macro", zero_division=0)
        assert counts.micro().f1 == pytest.approx(micro)
        assert counts.macro(absent=True).f1 == pytest.approx(macro)


@settings(deadline=None)
@given(numbers)
def test_numbers_as_scipy_and_scikit_learn_have_them(rows: list[tuple[int, int]]) -> None:
    predicted, gold = (np.array(part, float) for part in zip(*rows, strict=True))
    np.testing.assert_allclose(scores.ranks(gold), stats.rankdata(gold))
    if len(set(predicted)) > 1 and len(set(gold)) > 1:
        assert scores.pearson(predicted, gold) == pytest.approx(stats.pearsonr(predicted, gold)[0], abs=1e-12)
        assert scores.spearman(predicted, gold) == pytest.approx(stats.spearmanr(predicted, gold)[0], abs=1e-12)
    else:
        assert scores.pearson(predicted, gold) == scores.spearman(predicted, gold) == 0
    assert scores.mse(predicted, gold) == pytest.approx(oracle.mean_squared_error(gold, predicted))
    assert scores.mae(predicted, gold) == pytest.approx(oracle.mean_absolute_error(gold, predicted))
    assert scores.r2(predicted, gold) == pytest.approx(oracle.r2_score(gold, predicted))


def test_correlation_keeps_its_digits_far_from_zero() -> None:
    noise = np.random.default_rng(0).normal(size=(2, 500))
    expected = stats.pearsonr(noise[0], noise[0] + noise[1])[0]
    assert scores.pearson(noise[0] + 1e8, noise[0] + noise[1] - 1e8) == pytest.approx(expected, abs=1e-6)
    assert scores.pearson([0.1] * 3, [1, 2, 3]) == 0


def test_language() -> None:
    assert scores.perplexity(10 * math.log(7), 10) == pytest.approx(7)
    assert scores.perplexity(1e6, 1) == math.inf
    assert scores.bits_per_character(8 * math.log(2), 4) == pytest.approx(2)


def test_words_about_what_cannot_be_counted() -> None:
    with pytest.raises(InputError, match=r"Predicted label 3 is not in 0 … 2"):
        scores.confusion([3], [0], 3)
    with pytest.raises(InputError, match="2 predicted labels for 1"):
        scores.confusion([1, 1], [0], 3)
    with pytest.raises(InputError, match="expected a row of integers"):
        scores.confusion([0.5], [0], 3)
    with pytest.raises(InputError, match="0 labels"):
        scores.ConfusionCounts(0)
    with pytest.raises(InputError, match="at least one"):
        scores.perplexity(0, 0)
    with pytest.raises(InputError, match="at least one"):
        scores.bits_per_character(0, 0)
