"""Resampling by sums is resampling of rows."""

from __future__ import annotations

import numpy as np
import pytest

from regard.metrics.confidence import with_ones
from regard.metrics.label_meters import LabelMeter
from regard.metrics.paired.resample import (
    bootstrap_p,
    bootstrap_scores,
    expanded_interval,
    student_quantile,
    swapped_scores,
)
from regard.metrics.paired.rows import RowScore, RowTable

stats = pytest.importorskip("scipy.stats")


def means(values: np.ndarray) -> RowTable:
    return RowTable(with_ones(values), {"mean": RowScore((0, 1))})


def labels(predicted: np.ndarray, gold: np.ndarray, classes: int = 2) -> RowTable:
    meter = LabelMeter([str(number) for number in range(classes)])
    meter.keep_rows()
    meter.add_many(predicted, gold)
    return meter.row_table()


@pytest.mark.parametrize("kinds", [2, 1000], ids=["few kinds of rows", "all rows differ"])
def test_the_bootstrap_spreads_like_scipy_s(kinds: int) -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(0, kinds, 200) + (0.0 if kinds == 2 else generator.random(200))
    sampled = bootstrap_scores([means(values)], "mean", resamples=4000)[0]
    reference = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=generator)
    assert sampled.mean() == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(200 * 4000))
    assert sampled.std() == pytest.approx(reference.standard_error, rel=0.05)


def test_resampled_f1_and_mcc_are_those_of_the_resampled_rows() -> None:
    """A statistic of sums, on rows repeated as often as a resample has them, is the score of these rows."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 2, 300)
    predicted = np.where(generator.random(300) < 0.8, gold, 1 - gold)
    table = labels(predicted, gold)
    chosen = generator.integers(0, 300, 300)
    for name, of in (
        ("f1", metrics.f1_score),
        ("mcc", metrics.matthews_corrcoef),
        ("accuracy", metrics.accuracy_score),
    ):
        assert table.value(name, chosen) == pytest.approx(of(gold[chosen], predicted[chosen]))


def test_the_same_rows_are_drawn_for_all_tables() -> None:
    values = np.random.default_rng(2).normal(size=100)
    first, second = bootstrap_scores([means(values), means(values + 1)], "mean", resamples=50)
    assert np.allclose(second - first, 1)


def test_whole_groups_are_drawn() -> None:
    """Rows that are copies of each other are no new information: the spread is that of the groups."""
    values = np.random.default_rng(3).normal(size=50)
    once = bootstrap_scores([means(values)], "mean", resamples=4000)[0].std()
    repeated, groups = np.repeat(values, 10), np.repeat(np.arange(50), 10)
    assert bootstrap_scores([means(repeated)], "mean", resamples=4000)[0].std() == pytest.approx(
        once / np.sqrt(10), rel=0.06
    )
    grouped = bootstrap_scores([means(repeated)], "mean", groups=groups, resamples=4000)[0]
    assert grouped.std() == pytest.approx(once, rel=0.06)


def test_exchanges_are_those_of_scipy_s_permutation_test() -> None:
    generator = np.random.default_rng(4)
    first, second = generator.normal(0.3, 1, 60), generator.normal(0, 1, 60)
    differences = swapped_scores(means(first), means(second), "mean", resamples=8000)
    ours = (np.abs(differences) >= abs(first.mean() - second.mean())).mean()
    reference = stats.permutation_test(
        (first, second),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        permutation_type="samples",
        n_resamples=8000,
        vectorized=True,
        rng=generator,
    )
    assert ours == pytest.approx(reference.pvalue, abs=0.02)


@pytest.mark.parametrize(("freedom", "precision"), [(3, 0.08), (9, 0.02), (29, 0.005), (300, 0.001)])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.999])
def test_student_quantiles(probability: float, freedom: int, precision: float) -> None:
    """An approximation, which is good from 30 rows on: below there is no verdict."""
    assert student_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=precision)


def test_few_units_have_wider_intervals() -> None:
    sampled = np.random.default_rng(5).normal(size=100_000)
    few, many = expanded_interval(0.0, sampled, 30), expanded_interval(0.0, sampled, 100_000)
    assert many.high == pytest.approx(1.96, abs=0.03)
    assert few.high == pytest.approx(stats.t.ppf(0.975, 29) * np.sqrt(30 / 29), abs=0.04)
    assert expanded_interval(0.5, np.array([np.nan]), 3).low == 0.5


def test_p_belongs_to_the_interval() -> None:
    sampled = np.random.default_rng(6).normal(2.2, 1, 50_000)
    assert bootstrap_p(sampled, 30) == pytest.approx(2 * stats.t.sf(2.2 * np.sqrt(29 / 30), 29), rel=0.1)
    assert bootstrap_p(np.zeros(100), 50) == 1.0
    assert bootstrap_p(np.array([np.nan]), 50) == 1.0


def test_every_resample_of_many_rows_is_there() -> None:
    generator = np.random.default_rng(7)
    tables = [means(generator.normal(size=1_000)) for _ in range(2)]
    sampled = bootstrap_scores(tables, "mean", resamples=10_000)
    swapped = swapped_scores(tables[0], tables[1], "mean", resamples=10_000)
    assert sampled.shape == (2, 10_000)
    assert swapped.shape == (10_000,)
