"""Tests of a difference between two models on the same rows, their correction for many pairs, and their power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError
from regard.metrics.confidence import Score, mcnemar, mean
from regard.metrics.paired.resample import (
    NORMAL,
    RESAMPLES,
    bootstrap_p,
    bootstrap_scores,
    expanded_interval,
    swapped_scores,
)
from regard.metrics.paired.rows import RowTable

ALPHA = 0.05
POWER = 0.8
MIN_UNITS = 30  # rows, or groups of rows, below which there is no verdict
MANY_ROWS = 10_000_000  # the search for the number of rows ends here
ROUNDING = 1e-12
# Two trainings that differ in their seed alone differ in more than the choice of test rows shows, since a seed changes
# many rows at once. This is the correlation of two rows' differences: twice the 1.6e-4 of small networks on AG News
# (benchmarks/equal_models.py), of which tests without it call 6 % (accuracy) and 8.5 % (macro F1) different.
SEED_CORRELATION = 3e-4


@dataclass(frozen=True)
class PairTest:
    """How much higher the first of two models scores on the same rows. p is the largest of the tests that apply.

    A pair is called different only if all tests agree: the bootstrap, approximate randomization, and McNemar's exact
    test for rows that are right or wrong.
    """

    difference: Score  # first minus second, with its 95 % interval
    p: float  # the largest p of the tests below
    p_bootstrap: float
    p_randomization: float | None  # None for several seeds, and for Spearman's correlation
    p_mcnemar: float | None  # None unless rows are right or wrong, without groups, with one seed
    units: int  # rows, or groups of rows
    rows: int
    error: float  # standard error from the choice of rows
    seed_error: float  # standard error from the random seeds of the trainings; with one seed, what was assumed
    discrete: bool  # whether rows are right or wrong

    def rows_needed(self, *, alpha: float = ALPHA, power: float = POWER) -> int | None:
        """Rows with which a difference of this size would be shown; None if no number of rows would do."""
        per_unit = self.error * math.sqrt(self.units)
        units = units_needed(
            self.difference.value,
            per_unit,
            alpha=alpha,
            power=power,
            discrete=self.discrete,
            seed_error=self.seed_error,
        )
        return None if units is None else math.ceil(units * self.rows / self.units)


def compare_pair(
    first: Sequence[RowTable],
    second: Sequence[RowTable],
    name: str,
    *,
    groups: NDArray[np.intp] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    sampled: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    varying: int = 0,
) -> PairTest:
    """Compare two models, each by its tables (one for each seed of its training) on the same rows.

    name: the score. groups: the number of each row's group; whole groups are resampled.
    sampled: what `bootstrap_scores` returned for both, (seeds, resamples) each; computed if not given.
    varying: how many of the two would be another model if trained with another seed, but were trained once. The usual
        variance between seeds is assumed for them, so that the test is about how they were trained. With 0 it is about
        these two models as they are.
    """
    rows = _same_rows([*first, *second])
    if sampled is None:
        both = bootstrap_scores([*first, *second], name, groups=groups, resamples=resamples, seed=seed)
        sampled = both[: len(first)], both[len(first) :]
    units = rows if groups is None else int(groups.max()) + 1
    values = [np.array([table.value(name) for table in tables]) for tables in (first, second)]
    value = float(values[0].mean() - values[1].mean())
    by_rows = sampled[0].mean(0) - sampled[1].mean(0)
    error = float(np.nanstd(by_rows))
    assumed = error * math.sqrt(SEED_CORRELATION * units * varying / 2)
    noise, seed_error = seed_noise(values, resamples=len(by_rows), seed=seed, assumed=assumed)
    differences = by_rows + noise
    one_seed = len(first) == len(second) == 1
    randomization, exact = None, None
    if one_seed:
        randomization = _randomization_p(first[0], second[0], name, value, groups, resamples, seed)
        exact = None if groups is not None else _mcnemar_p(first[0], second[0], name)
    bootstrapped = bootstrap_p(differences, units)
    return PairTest(
        difference=expanded_interval(value, differences, units),
        p=max(p for p in (bootstrapped, randomization, exact) if p is not None),
        p_bootstrap=bootstrapped,
        p_randomization=randomization,
        p_mcnemar=exact,
        units=units,
        rows=rows,
        error=error,
        seed_error=seed_error,
        discrete=all(_is_right_or_wrong(table, name) for table in (*first, *second)) and one_seed,
    )


def _same_rows(tables: Sequence[RowTable]) -> int:
    counts = sorted({table.rows for table in tables})
    if len(counts) != 1 or not counts[0]:
        raise InputError(f"The models answered {counts} rows; expected the same rows, and at least one.")
    return counts[0]


def seed_noise(
    values: Sequence[NDArray[np.float64]], *, resamples: int, seed: int, assumed: float = 0.0
) -> tuple[NDArray[np.float64] | float, float]:
    """Random differences from the choice of seeds, and their standard error: Welch's, with Student's distribution.

    assumed: a standard error that is added for models with one seed.
    """
    parts = [(values_of.var(ddof=1) / len(values_of), len(values_of) - 1) for values_of in values if len(values_of) > 1]
    variance = sum(part for part, _ in parts)
    generator = np.random.default_rng([seed, 1])
    noise = generator.normal(0, assumed, resamples) if assumed else 0.0
    if variance <= 0:
        return noise, assumed
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    return noise + generator.standard_t(freedom, resamples) * math.sqrt(variance), math.hypot(variance**0.5, assumed)


def _randomization_p(
    first: RowTable,
    second: RowTable,
    name: str,
    value: float,
    groups: NDArray[np.intp] | None,
    resamples: int,
    seed: int,
) -> float | None:
    """The fraction of random exchanges with a difference as large as the observed one (Noreen 1989)."""
    if not first.score(name).swappable:
        return None
    differences = swapped_scores(first, second, name, groups=groups, resamples=resamples, seed=seed)
    as_large = np.abs(differences) >= abs(value) - ROUNDING
    return float((1 + as_large.sum()) / (1 + len(differences)))


def _is_right_or_wrong(table: RowTable, name: str) -> bool:
    """Whether a score is the fraction of rows that are right."""
    score, numbers = table.score(name), table.columns(name)
    return score.statistic is mean and bool(np.isin(numbers[:, 0], (0, 1)).all() and (numbers[:, 1] == 1).all())


def _mcnemar_p(first: RowTable, second: RowTable, name: str) -> float | None:
    if not (_is_right_or_wrong(first, name) and _is_right_or_wrong(second, name)):
        return None
    ours, theirs = first.columns(name)[:, 0] > 0, second.columns(name)[:, 0] > 0
    return mcnemar(int((ours & ~theirs).sum()), int((theirs & ~ours).sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979): with 0.05, any false "different" has a chance of 5 % at most."""
    order = sorted(range(len(p_values)), key=lambda number: p_values[number])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, number in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[number]))
        corrected[number] = largest
    return corrected


def power_of(
    difference: float,
    deviation: float,
    units: float,
    *,
    alpha: float = ALPHA,
    discrete: bool = False,
    seed_error: float = 0.0,
) -> float:
    """The probability that a true difference is shown with this many rows (or groups).

    deviation: standard deviation of the difference of one row; for accuracies, the square root of the fraction of rows
        that only one of both has right.
    discrete: rows are right or wrong, which the exact test pays for (correction for continuity).
    seed_error: standard error from the seeds, which more rows do not reduce.
    """
    error = math.sqrt(deviation**2 / units + seed_error**2)
    if error == 0:
        return 1.0 if difference else 0.0
    size = max(0.0, abs(difference) - (1 / units if discrete else 0.0))
    return NORMAL.cdf(size / error - NORMAL.inv_cdf(1 - alpha / 2))


def units_needed(
    difference: float,
    deviation: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
    discrete: bool = False,
    seed_error: float = 0.0,
) -> int | None:
    """The smallest number of rows (or groups) with this power; None above ten million, or if none is enough."""

    def reached(units: int) -> float:
        return power_of(difference, deviation, units, alpha=alpha, discrete=discrete, seed_error=seed_error)

    low, high = 2, MANY_ROWS
    if difference == 0 or reached(high) < power:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if reached(middle) < power else (low, middle)
    return low
