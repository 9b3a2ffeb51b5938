"""Resampling of rows, or of whole groups of rows: the bootstrap and approximate randomization.

Rows are summed, not copied: a resample is a vector of how often each row was drawn, and thousands of them times the
table of numbers is one matrix product. Rows with equal numbers (there are four kinds of them if two models are right or
wrong) are counted instead, so that a resample is a draw of a few counts, whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from regard.metrics.confidence import Score
from regard.metrics.paired.rows import Numbers, RowTable, group_sums

RESAMPLES = 10_000
CELLS = 1 << 22  # counts in memory at once
FEW_KINDS = 4  # rows are counted by kind if there are at least this many per kind
NORMAL = NormalDist()


def bootstrap_scores(
    tables: Sequence[RowTable],
    name: str,
    *,
    groups: NDArray[np.intp] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Numbers:
    """A score of every table (tables, resamples) on rows that are sampled with replacement, the same for all tables.

    groups: the number of each row's group; whole groups are sampled.
    """
    parts = [table.columns(name) for table in tables]
    units = group_sums(np.hstack(parts), groups)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    statistics = [table.score(name).statistic for table in tables]
    chunks = []
    for sums in _bootstrap_sums(units, resamples, seed):
        cuts = np.split(sums, ends, axis=1)
        chunks.append(np.stack([of(cut.T) for of, cut in zip(statistics, cuts, strict=True)]))
    return np.concatenate(chunks, axis=1)


def _bootstrap_sums(units: Numbers, resamples: int, seed: int) -> Iterator[Numbers]:
    """Sums (resamples, columns) of as many units as there are, sampled with replacement."""
    generator = np.random.default_rng(seed)
    kinds, counts = _kinds(units)
    rows = len(units)
    if counts is not None:
        for some in _chunks(resamples, max(kinds.shape)):
            yield generator.multinomial(rows, counts / rows, size=some) @ kinds
        return
    for some in _chunks(resamples, max(units.shape)):
        cells = generator.integers(0, rows, size=(some, rows)) + rows * np.arange(some)[:, None]
        drawn_counts = np.bincount(cells.ravel(), minlength=some * rows).reshape(some, rows)
        yield drawn_counts.astype(np.float64) @ units


def swapped_scores(
    first: RowTable,
    second: RowTable,
    name: str,
    *,
    groups: NDArray[np.intp] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Numbers:
    """Differences of a score after the two models have exchanged random rows (or groups), each with probability 1/2."""
    ours, theirs = (group_sums(table.columns(name), groups) for table in (first, second))
    statistic = first.score(name).statistic
    total, other_total = ours.sum(0), theirs.sum(0)
    differences = [
        statistic((total + moved).T) - statistic((other_total - moved).T)
        for moved in _swapped_sums(theirs - ours, resamples, seed)
    ]
    return np.concatenate(differences)


def _swapped_sums(units: Numbers, resamples: int, seed: int) -> Iterator[Numbers]:
    """Sums (resamples, columns) of units that are each taken with probability 1/2."""
    generator = np.random.default_rng(seed)
    kinds, counts = _kinds(units)
    if counts is not None:
        for some in _chunks(resamples, max(kinds.shape)):
            yield generator.binomial(counts, 0.5, size=(some, len(kinds))) @ kinds
        return
    for some in _chunks(resamples, max(units.shape)):
        bits = np.frombuffer(generator.bytes(some * len(units) // 8 + 1), np.uint8)
        chosen = np.unpackbits(bits, count=some * len(units)).reshape(some, len(units))
        yield chosen.astype(np.float64) @ units


def _kinds(units: Numbers) -> tuple[Numbers, NDArray[np.int64] | None]:
    """The distinct units and how many there are of each; None for the counts if most units are different."""
    kinds, counts = np.unique(units, axis=0, return_counts=True)
    return (kinds, counts) if len(kinds) * FEW_KINDS <= len(units) else (units, None)


def _chunks(resamples: int, width: int) -> Iterator[int]:
    size = max(1, CELLS // max(width, 1))
    while resamples > 0:
        yield min(size, resamples)
        resamples -= size


def expanded_interval(value: float, sampled: Numbers, units: int, *, level: float = 0.95) -> Score:
    """The percentile interval, a little wider for few units (Hesterberg 2015, "expanded percentile interval").

    The bootstrap takes the variance of n units with n instead of n - 1, and the normal distribution instead of
    Student's. With 1,000 units this makes no difference, with 30 it is 6 %.
    """
    known = sampled[~np.isnan(sampled)]
    if not known.size:
        return Score(value, value, value)
    tail = (1 - level) / 2
    if units > 1:
        wider = math.sqrt(units / (units - 1)) * student_quantile(1 - tail, units - 1)
        tail = NORMAL.cdf(-wider)
    low, high = np.quantile(known, tail, method="lower"), np.quantile(known, 1 - tail, method="higher")
    return Score(value, float(min(value, low)), float(max(value, high)))


def bootstrap_p(sampled: Numbers, units: int) -> float:
    """Two-sided p of a difference: twice the smaller tail beyond 0, with the same correction as the interval."""
    known = sampled[~np.isnan(sampled)]
    if not known.size:
        return 1.0
    tails = [(1 + (known <= 0).sum()) / (1 + len(known)), (1 + (known >= 0).sum()) / (1 + len(known))]
    tail = float(min(tails))
    if tail >= 0.5 or units < 2:
        return 1.0
    student = -NORMAL.inv_cdf(tail) * math.sqrt((units - 1) / units)
    return min(1.0, 2 * NORMAL.cdf(-_normal_of_student(student, units - 1)))


def student_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t distribution, by the inverse of the approximation in `_normal_of_student`."""
    target = NORMAL.inv_cdf(probability)
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _normal_of_student(middle, freedom) < target else (low, middle)
    return low


def _normal_of_student(value: float, freedom: float) -> float:
    """The normal quantile with the same tail as this one of Student's t (Wallace 1959, equation 4.4)."""
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    return factor * math.sqrt(freedom * math.log1p(value * value / freedom))
