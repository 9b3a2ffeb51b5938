"""How sure a score is: 95 % intervals, and whether one system beats another on the same rows.

A share of rows has Wilson's interval. Everything else is bootstrapped by rows, with 1,000 replicates:

- Scores that come from sums over rows (F1 of entities, correlations, a mean) use the Poisson bootstrap: each replicate
  weighs each row by a Poisson(1) number, which is what drawing rows with replacement comes to when there are many. So
  a replicate is a handful of sums, rows are forgotten at once, and memory does not grow with them. Rows are weighed
  1,024 at a time. The weights are a function of the seed and the row's number only: the same
  rows have the same weights in every run and for every system.
- Rows with one label each are alike within a cell of the confusion matrix, so drawing rows is drawing cells: one
  multinomial at the end does it exactly, and a row costs nothing.
- Spearman's correlation is no function of sums: see `spearman_interval`.

The interval spans the 2.5th and 97.5th percentile of the replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError

Z = 1.959963984540054  # 97.5 % of a normal distribution lie below
REPLICATES = 1000
BLOCK = 1024  # rows weighed at once: 4 MB of weights
NARROW = 16  # features up to which a block is weighed without the matrix product
SPARSE = 12  # where fewer than one in so many numbers of a block is not 0, its columns are weighed one by one
CELLS = 1 << 20  # counts drawn at once
CELL_DRAWS = 1 << 24  # counts drawn in all before replicates become fewer: about a second

Sums = NDArray[np.float64]
Statistic = Callable[[Sums], Any]  # sums, features first: one number, or one for each replicate


@dataclass(frozen=True, slots=True)
class Score:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better the first system is, its interval, and how likely a difference like it is by chance alone."""

    score: Score
    p: float


def wilson(hits: float, count: float) -> Score:
    """Wilson's interval of a proportion: sound for few rows and near 0 and 1, where the normal one is not."""
    if count <= 0 or not 0 <= hits <= count:
        raise InputError(f"{hits} of {count} is no proportion; expected a count above 0, and hits from 0 to it.")
    fraction = hits / count
    middle = (fraction + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z * math.sqrt(fraction * (1 - fraction) / count + Z**2 / (4 * count**2)) / (1 + Z**2 / count)
    return Score(fraction, max(0.0, min(fraction, middle - half)), min(1.0, max(fraction, middle + half)))


def interval(value: float, replicates: ArrayLike) -> Score:
    """The middle 95 % of the replicates, and the value itself. Replicates that drew no row (NaN) are left out."""
    sampled = np.asarray(replicates, np.float64)
    sampled = sampled[~np.isnan(sampled)]
    if not sampled.size:
        return Score(float(value), float(value), float(value))
    # "lower" and "higher" do not compute between two replicates, which infinite ones do not allow
    low, high = np.quantile(sampled, 0.025, method="lower"), np.quantile(sampled, 0.975, method="higher")
    return Score(float(value), float(min(value, low)), float(max(value, high)))


def require_rows(rows: float) -> None:
    """A score of nothing is no number."""
    if not rows:
        raise InputError("No record was added, so there is no score; expected at least one with a gold answer.")


@cache
def _poisson() -> NDArray[np.float32]:
    """Poisson(1) numbers for each of 65,536 equally likely draws."""
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(below, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.float32)


def weights(seed: int, block: int, rows: int = BLOCK) -> NDArray[np.float32]:
    """Weights (rows, replicates) of the first rows of a block."""
    raw = np.random.SFC64([seed, block]).random_raw(rows * REPLICATES // 4).view(np.uint16)
    return np.take(_poisson(), raw, mode="wrap").reshape(rows, REPLICATES)


class Replicates:
    """Sums of what rows are counted by, in all and for each replicate; flat in memory."""

    def __init__(self, width: int, *, seed: int = 0) -> None:
        self.rows = 0
        self._seed = seed
        self._block = np.zeros((BLOCK, width))
        self._totals = np.zeros(width)
        self._sums = np.zeros((width, REPLICATES))

    def add(self, row: Sequence[float]) -> None:
        """One row: as many numbers as there are features."""
        place = self.rows % BLOCK
        self._block[place] = row
        self.rows += 1
        if place == BLOCK - 1:
            self._flush()

    def add_many(self, rows: NDArray[Any]) -> None:
        """Rows (rows, features)."""
        start = 0
        while start < len(rows):
            place = self.rows % BLOCK
            part = rows[start : start + BLOCK - place]
            self._block[place : place + len(part)] = part
            self.rows += len(part)
            start += len(part)
            if place + len(part) == BLOCK:
                self._flush()

    def _flush(self) -> None:
        self._totals += self._block.sum(0)
        self._sums += _weighed(self._block, weights(self._seed, self.rows // BLOCK - 1))

    def totals(self) -> Sums:
        """The sum of each feature."""
        result: Sums = self._totals + self._block[: self.rows % BLOCK].sum(0)
        return result

    def sums(self) -> Sums:
        """The sum of each feature in each replicate (features, replicates)."""
        remaining = self.rows % BLOCK
        if not remaining:
            return self._sums.copy()
        result: Sums = self._sums + _weighed(
            self._block[:remaining], weights(self._seed, self.rows // BLOCK, remaining)
        )
        return result

    def scores(self, **statistics: Statistic) -> dict[str, Score]:
        """Scores that are functions of the sums, by name."""
        totals, sums = self.totals(), self.sums()
        return {name: interval(float(statistic(totals)), statistic(sums)) for name, statistic in statistics.items()}


def _weighed(rows: NDArray[np.float64], sampled: NDArray[np.float32]) -> NDArray[Any]:
    """The sums of each replicate.

    Narrow products are left to einsum, which has no threads: on a busy machine those of a matrix product wait for each
    other ten times longer than the product takes.
    """
    if rows.shape[1] <= NARROW:
        result: NDArray[Any] = np.einsum("rf,rb->fb", rows.astype(np.float32), sampled)
        return result
    places, columns = np.nonzero(rows)
    if len(places) * SPARSE >= rows.size:
        return rows.astype(np.float32).T @ sampled
    result = np.zeros((rows.shape[1], REPLICATES), np.float32)
    order = np.argsort(columns, kind="stable")
    present, starts = np.unique(columns[order], return_index=True)
    for column, some in zip(present, np.split(places[order], starts[1:]), strict=True):
        result[column] = np.einsum("r,rb->b", rows[some, column].astype(np.float32), sampled[some])
    return result


def mean(sums: Sums) -> Any:
    """The first sum divided by the second; NaN where a replicate drew nothing."""
    return np.divide(sums[0], sums[1], out=np.full(np.shape(sums[0]), np.nan), where=np.asarray(sums[1]) != 0)[()]


def with_ones(rows: ArrayLike) -> NDArray[np.float64]:
    """Numbers, one a row, as features for `mean`."""
    numbers = np.asarray(rows, np.float64)
    return np.stack([numbers, np.ones(len(numbers))], axis=1)


def bootstrap(rows: ArrayLike, statistic: Statistic = mean, *, seed: int = 0) -> Score:
    """The score of rows that are here already: one number each, or (rows, features) with a statistic of their sums."""
    result = _features(rows)
    held = Replicates(result.shape[1], seed=seed)
    held.add_many(result)
    return held.scores(value=statistic)["value"]


def _features(rows: ArrayLike) -> NDArray[np.float64]:
    result = np.asarray(rows, np.float64)
    result = with_ones(result) if result.ndim == 1 else result
    if result.ndim != 2 or not len(result):
        raise InputError(f"Rows of shape {result.shape} were given; expected (rows,) or (rows, features), not empty.")
    return result


def paired_bootstrap(first: ArrayLike, second: ArrayLike, statistic: Statistic = mean, *, seed: int = 0) -> Difference:
    """How much higher the first system scores on the same rows: a paired bootstrap.

    Rows as in `bootstrap`. Each replicate draws the same rows for both, so what makes a row hard for both cancels out.
    p is two-sided: twice the share of replicates on the side of 0 that the difference is not on.
    """
    ours, theirs = _features(first), _features(second)
    if ours.shape != theirs.shape:
        raise InputError(f"Rows of shapes {ours.shape} and {theirs.shape} are no pairs; expected the same rows twice.")
    both = Replicates(2 * ours.shape[1], seed=seed)
    both.add_many(np.hstack([ours, theirs]))
    half = ours.shape[1]

    def gap(sums: Sums) -> Any:
        return statistic(sums[:half]) - statistic(sums[half:])

    value, sampled = float(gap(both.totals())), np.asarray(gap(both.sums()))
    sampled = sampled[~np.isnan(sampled)]
    tails = [(1 + (sampled <= 0).sum()) / (1 + len(sampled)), (1 + (sampled >= 0).sum()) / (1 + len(sampled))]
    return Difference(interval(value, sampled), min(1.0, 2 * float(min(tails))))


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p of McNemar's test, from the rows that only one of two systems has right."""
    many, few = max(only_first, only_second), min(only_first, only_second)
    if few < 0:
        raise InputError(f"{only_first} and {only_second} rows were given; expected counts.")
    count = many + few
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(few + 1)]
    return min(1.0, 2 * math.fsum(math.exp(log - count * math.log(2)) for log in logs))


def resample_counts(counts: NDArray[np.int64], *, width: int = 1, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """Counts of cells as if the rows in them had been drawn again, a few replicates (replicates, cells) at a time.

    width: how many numbers are made of one replicate, so that a few replicates stay small.
    With more than 16,777 cells there are fewer than 1,000 replicates, 100 at the least, so that the time stays small.
    """
    rows, generator = int(counts.sum()), np.random.default_rng(seed)
    left, size = int(np.clip(CELL_DRAWS // max(len(counts), 1), 100, REPLICATES)), max(len(counts), width, 1)
    while left:
        some = min(left, max(1, CELLS // size))
        yield generator.multinomial(rows, counts / rows, size=some)
        left -= some


def spearman_interval(value: float, first: ArrayLike, second: ArrayLike) -> Score:
    """The interval of Spearman's correlation, by the infinitesimal jackknife on Fisher's scale.

    Ranks depend on all rows drawn, so a bootstrap would rank every replicate anew. How the correlation moves with the
    weight of each row has a closed form instead, ties included; the squares of these add up to the variance.
    """
    x, y = _groups(first), _groups(second)
    left, right = (_signs(part, np.ones(len(part))) for part in (x, y))
    ours, theirs = float(np.square(left).sum()), float(np.square(right).sum())
    if ours == 0 or theirs == 0 or abs(value) >= 1:
        return Score(value, value, value)
    moves = (left * right - _signs(x, right) - _signs(y, left)) / math.sqrt(ours * theirs)
    moves -= value / 2 * (left**2 - 2 * _signs(x, left)) / ours
    moves -= value / 2 * (right**2 - 2 * _signs(y, right)) / theirs
    error = math.sqrt(float(np.square(moves).sum()))
    middle, half = math.atanh(value), Z * error / (1 - value**2)
    return Score(value, math.tanh(middle - half), math.tanh(middle + half))


def _groups(values: ArrayLike) -> NDArray[np.intp]:
    return np.unique(np.asarray(values, np.float64), return_inverse=True)[1]


def _signs(groups: NDArray[np.intp], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of what rows below each row hold, less half of what those above hold; of ones it is the centred rank."""
    held = np.bincount(groups, shares)
    result: NDArray[np.float64] = (np.cumsum(held) - held / 2 - held.sum() / 2)[groups]
    return result
