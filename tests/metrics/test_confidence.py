"""Intervals hold what they promise: 95 % of them hold the truth. Pairs are told apart as textbooks tell them apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from regard.errors import InputError
from regard.metrics import confidence, scores
from regard.metrics.confidence import (
    BLOCK,
    REPLICATES,
    Replicates,
    bootstrap,
    mcnemar,
    paired_bootstrap,
    weights,
    wilson,
)


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (1, 1), (3, 10), (0, 40), (40, 40), (871, 1000)])
def test_wilson_as_scipy_has_it(hits: int, count: int) -> None:
    result = wilson(hits, count)
    expected = stats.binomtest(hits, count).proportion_ci(method="wilson")
    assert (result.value, result.low, result.high) == pytest.approx(
        (hits / count, expected.low, expected.high), abs=1e-12
    )


def test_weights_are_poisson_and_depend_on_seed_and_row_only() -> None:
    sampled = weights(0, 3)
    assert sampled.shape == (BLOCK, REPLICATES)
    for many in range(6):
        assert (sampled == many).mean() == pytest.approx(math.exp(-1) / math.factorial(many), abs=2e-3)
    assert np.abs(np.asarray(np.corrcoef(sampled[:50]))[np.triu_indices(50, 1)]).max() < 0.2
    assert (weights(0, 3, 10) == sampled[:10]).all()
    assert not (weights(1, 3, 10) == sampled[:10]).all()
    assert not (weights(0, 4, 10) == sampled[:10]).all()


@pytest.mark.parametrize(("width", "density"), [(5, 1.0), (20, 1.0), (20, 0.01)])
def test_replicates_are_the_weighed_sums_however_rows_come(width: int, density: float) -> None:
    random = np.random.default_rng(0)
    rows = random.random((2 * BLOCK + 77, width)) * (random.random((2 * BLOCK + 77, width)) < density)
    at_once, one_by_one, parts = Replicates(width), Replicates(width), Replicates(width)
    at_once.add_many(rows)
    for row in rows:
        one_by_one.add(row)
    for start in range(0, len(rows), 500):
        parts.add_many(rows[start : start + 500])
        parts.sums()  # looking changes nothing
    sampled = np.concatenate([weights(0, block) for block in range(3)])[: len(rows)]
    for values in (at_once, one_by_one, parts):
        assert values.rows == len(rows)
        np.testing.assert_allclose(values.totals(), rows.sum(0))
        np.testing.assert_allclose(values.sums(), rows.T @ sampled, rtol=1e-4)


def coverage(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_bootstrap_of_a_mean_is_as_wide_as_it_should_be() -> None:
    numbers = np.random.default_rng(0).normal(size=3000)
    result = bootstrap(numbers)
    half = 1.96 * numbers.std() / math.sqrt(len(numbers))
    assert result.value == pytest.approx(numbers.mean())
    assert (result.low, result.high) == pytest.approx((numbers.mean() - half, numbers.mean() + half), abs=0.1 * half)


def test_intervals_of_ratios_hold_the_truth_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(1)

    def trial() -> bool:
        gold = random.poisson(2, 300)
        hits, spare = random.binomial(gold, 0.7), random.poisson(0.5, 300)
        result = bootstrap(np.stack([hits, hits + spare, gold], 1), lambda sums: scores.f1(*sums))
        return result.low <= 2 * 1.4 / (1.4 + 0.5 + 2) <= result.high

    assert 0.90 <= coverage([trial() for _ in range(200)]) <= 0.99


@pytest.mark.parametrize("linear", [0.0, 0.6, -0.98])
def test_intervals_of_spearman_hold_the_truth(linear: float) -> None:
    random = np.random.default_rng(2)
    truth = 6 / math.pi * math.asin(linear / 2)  # of a normal distribution

    def trial() -> bool:
        first, second = random.multivariate_normal([0, 0], [[1, linear], [linear, 1]], 150).T
        result = confidence.spearman_interval(scores.spearman(first, second), first, second)
        return result.low <= truth <= result.high

    assert 0.91 <= coverage([trial() for _ in range(400)]) <= 0.98


@pytest.mark.parametrize(("levels", "noise"), [(4, 3), (9, 0), (9, 9)])
def test_the_interval_of_spearman_is_as_wide_as_a_bootstrap_makes_it(levels: int, noise: int) -> None:
    random = np.random.default_rng(3)
    first = random.integers(0, levels, 400)
    second = first + random.integers(-noise, noise + 1, 400) if noise else random.integers(0, levels, 400)
    result = confidence.spearman_interval(scores.spearman(first, second), first, second)
    draws = [random.integers(0, 400, 400) for _ in range(1000)]
    expected = confidence.interval(result.value, [scores.spearman(first[rows], second[rows]) for rows in draws])
    assert result.high - result.low == pytest.approx(expected.high - expected.low, rel=0.12)
    assert result.low == pytest.approx(expected.low, abs=0.2 * (expected.high - expected.low))


def test_the_interval_of_spearman_where_nothing_moves() -> None:
    assert confidence.spearman_interval(0.0, [1, 1], [1, 2]) == confidence.Score(0, 0, 0)
    assert confidence.spearman_interval(1.0, [1, 2], [1, 2]) == confidence.Score(1, 1, 1)
    even = confidence.spearman_interval(0.0, [1, 1, 2, 2] * 20, [1, 2, 1, 2] * 20)
    assert (even.low, even.high) == pytest.approx((-0.216, 0.216), abs=0.01)


def test_redrawn_cells_keep_the_rows_and_spread_like_them() -> None:
    counts = np.array([500, 300, 200])
    sampled = np.concatenate(list(confidence.resample_counts(counts)))
    assert sampled.shape == (REPLICATES, 3)
    assert (sampled.sum(1) == 1000).all()
    assert sampled[:, 0].std() == pytest.approx(math.sqrt(1000 * 0.5 * 0.5), rel=0.1)
    assert len(np.concatenate(list(confidence.resample_counts(np.ones(100_000, np.int64))))) == 167


def test_interval_leaves_out_replicates_of_nothing() -> None:
    assert confidence.interval(1.0, [np.nan, 0.5]) == confidence.Score(1.0, 0.5, 1.0)
    assert confidence.interval(1.0, [np.nan]) == confidence.Score(1.0, 1.0, 1.0)
    assert confidence.interval(1.0, [np.inf] * 3).high == np.inf
    alone = bootstrap([3.0])
    assert (alone.value, alone.low, alone.high) == (3.0, 3.0, 3.0)


def test_the_paired_bootstrap_ignores_shared_noise() -> None:
    random = np.random.default_rng(4)
    hard = random.normal(size=2000)
    better, worse = hard + 0.05 + 0.3 * random.normal(size=2000), hard
    result = paired_bootstrap(better, worse)
    assert result.score.low > 0
    assert result.p < 0.01
    assert bootstrap(better).low < bootstrap(worse).high, "alone they cannot be told apart"
    back = paired_bootstrap(worse, better)
    assert (back.score.value, back.p) == (pytest.approx(-result.score.value), pytest.approx(result.p))
    assert paired_bootstrap(hard, hard).p == 1


def test_p_of_equal_systems_is_even() -> None:
    random = np.random.default_rng(5)
    results = [paired_bootstrap(*(random.random((2, 200)) < 0.8)).p for _ in range(150)]
    assert np.mean(np.array(results) < 0.05) < 0.12
    assert 0.35 < np.mean(results) < 0.65


def test_pairs_with_a_statistic() -> None:
    rows: Any = np.array([[1, 1, 1], [1, 2, 2], [2, 2, 3]] * 50)
    worse = rows - [1, 0, 0]
    result = paired_bootstrap(rows, worse, lambda sums: scores.f1(*sums))
    assert result.score.value == pytest.approx(8 / 11 - 2 / 11)
    assert result.p < 0.01


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (12, 3), (40, 60), (5, 5), (300, 200)])
def test_mcnemar_is_the_binomial_test(first: int, second: int) -> None:
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)


def test_words_about_what_is_no_proportion_or_pair() -> None:
    for hits, count in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(InputError, match="not a proportion"):
            wilson(hits, count)
    with pytest.raises(InputError, match="same rows for both"):
        paired_bootstrap([1, 2], [1])
    with pytest.raises(InputError, match="not empty"):
        bootstrap([])
    with pytest.raises(InputError, match="expected counts"):
        mcnemar(-1, 2)
