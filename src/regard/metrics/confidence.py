"""Confidence intervals of 95 %, and tests whether one system beats another on the same rows.

A fraction of rows has Wilson's interval (Wilson 1927). Other scores are bootstrapped by rows (Efron 1979), with 1,000
replicates:

- Scores that come from sums over rows (F1 of entities, correlations, a mean) use the Poisson bootstrap: each replicate
  weights each row by a Poisson(1) number, which approximates sampling rows with replacement. So a replicate is a few
  sums, rows need not be kept, and memory does not grow with them. Rows are weighed
  1,024 at a time. The weights are a function of the seed and the row's number only: the same
  rows have the same weights in every run and for every system.
- Rows with one label each are alike within a cell of the confusion matrix, so drawing rows is drawing cells: one
  multinomial at the end does it exactly, and a row costs nothing. If every row is right, no draw has an error, however
  few rows there are: then the lower end is the score at the lower end of the accuracy, with errors spread evenly.
- Spearman's correlation is no function of sums: see `spearman_interval`.

The interval spans the 2.5th and 97.5th percentile of the replicates.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError

Z = 1.959963984540054  # 97.5 % quantile of the normal distribution
REPLICATES = 1000
BLOCK = 1024  # rows weighed at once: 4 MB of weights
NARROW = 16  # features up to which a block is summed without a matrix product
SPARSE = 12  # with fewer than 1 in SPARSE nonzero numbers, columns are summed one by one
CELLS = 1 << 20  # counts sampled at once
CELL_DRAWS = 1 << 24  # counts sampled in total before the number of replicates is reduced: about a second

Sums = NDArray[np.float64]
Statistic = Callable[[Sums], Any]  # sums, features first: one number, or one for each replicate


@dataclass(frozen=True, slots=True)
class Score:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float


def scores_in_words(scores: Mapping[str, Score]) -> dict[str, str]:
    """Each score as "0.9123 (0.9001 to 0.9240)"."""
    return {name: f"{one.value:.4g} ({one.low:.4g} to {one.high:.4g})" for name, one in scores.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems with its interval, and the p-value."""

    score: Score
    p: float


def wilson(hits: float, count: float) -> Score:
    """Wilson's interval of a proportion, accurate also for few rows and near 0 and 1."""
    if count <= 0 or not 0 <= hits <= count:
        raise InputError(
            f"{hits} of {count} is not a proportion; expected a count above 0, and hits between 0 and the count."
        )
    fraction = hits / count
    middle = (fraction + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z * math.sqrt(fraction * (1 - fraction) / count + Z**2 / (4 * count**2)) / (1 + Z**2 / count)
    return Score(fraction, max(0.0, min(fraction, middle - half)), min(1.0, max(fraction, middle + half)))


def interval(value: float, replicates: ArrayLike) -> Score:
    """The value with the middle 95 % of the replicates. Replicates without rows (NaN) are ignored."""
    sampled = np.asarray(replicates, np.float64)
    sampled = sampled[~np.isnan(sampled)]
    if not sampled.size:
        return Score(float(value), float(value), float(value))
    # "lower" and "higher" do not compute between two replicates, which infinite ones do not allow
    low, high = np.quantile(sampled, 0.025, method="lower"), np.quantile(sampled, 0.975, method="higher")
    return Score(float(value), float(min(value, low)), float(max(value, high)))


def require_rows(rows: float) -> None:
    """Raise an error if nothing was added."""
    if not rows:
        raise InputError("No record was added, so there is no score; expected at least one with a gold answer.")


@cache
def _poisson() -> NDArray[np.float32]:
    """The Poisson(1) number of each of 65,536 equally likely random values."""
    below = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(below, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.float32)


def weights(seed: int, block: int, rows: int = BLOCK) -> NDArray[np.float32]:
    """Weights (rows, replicates) of the first rows of a block."""
    raw = np.random.SFC64([seed, block]).random_raw(rows * REPLICATES // 4).view(np.uint16)
    return np.take(_poisson(), raw, mode="wrap").reshape(rows, REPLICATES)


class Replicates:
    """Sums of features over rows, in total and for each bootstrap replicate, in constant memory."""

    def __init__(self, width: int, *, seed: int = 0) -> None:
        self.rows = 0
        self._seed = seed
        self._block = np.zeros((BLOCK, width))
        self._totals = np.zeros(width)
        self._sums = np.zeros((width, REPLICATES))
        self._all_rows: array[float] | None = None

    def keep_rows(self) -> None:
        """Keep every row that is added from now on, for comparisons in pairs."""
        self._all_rows = array("d")

    def all_rows(self) -> NDArray[np.float64]:
        """The rows (rows, features) that were added since `keep_rows`."""
        return np.array(self._all_rows or (), np.float64).reshape(-1, len(self._totals))

    def add(self, row: Sequence[float]) -> None:
        """Add one row with one number per feature."""
        offset = self.rows % BLOCK
        self._block[offset] = row
        if self._all_rows is not None:
            self._all_rows.extend(self._block[offset])
        self.rows += 1
        if offset == BLOCK - 1:
            self._flush()

    def add_many(self, rows: NDArray[Any]) -> None:
        """Add rows of shape (rows, features)."""
        start = 0
        while start < len(rows):
            offset = self.rows % BLOCK
            part = rows[start : start + BLOCK - offset]
            self._block[offset : offset + len(part)] = part
            if self._all_rows is not None:
                self._all_rows.frombytes(self._block[offset : offset + len(part)].tobytes())
            self.rows += len(part)
            start += len(part)
            if offset + len(part) == BLOCK:
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
    row_numbers, columns = np.nonzero(rows)
    if len(row_numbers) * SPARSE >= rows.size:
        return rows.astype(np.float32).T @ sampled
    result = np.zeros((rows.shape[1], REPLICATES), np.float32)
    order = np.argsort(columns, kind="stable")
    present, starts = np.unique(columns[order], return_index=True)
    for column, some in zip(present, np.split(row_numbers[order], starts[1:]), strict=True):
        result[column] = np.einsum("r,rb->b", rows[some, column].astype(np.float32), sampled[some])
    return result


def mean(sums: Sums) -> Any:
    """The first sum divided by the second; NaN for a replicate without rows."""
    return np.divide(sums[0], sums[1], out=np.full(np.shape(sums[0]), np.nan), where=np.asarray(sums[1]) != 0)[()]


def with_ones(rows: ArrayLike) -> NDArray[np.float64]:
    """Numbers, one per row, as features for `mean`."""
    numbers = np.asarray(rows, np.float64)
    return np.stack([numbers, np.ones(len(numbers))], axis=1)


def bootstrap(rows: ArrayLike, statistic: Statistic = mean, *, seed: int = 0) -> Score:
    """Bootstrap of rows in memory: one number each, or (rows, features) with a statistic of their sums."""
    result = _features(rows)
    replicates = Replicates(result.shape[1], seed=seed)
    replicates.add_many(result)
    return replicates.scores(value=statistic)["value"]


def _features(rows: ArrayLike) -> NDArray[np.float64]:
    result = np.asarray(rows, np.float64)
    result = with_ones(result) if result.ndim == 1 else result
    if result.ndim != 2 or not len(result):
        raise InputError(f"Rows of shape {result.shape} were given; expected (rows,) or (rows, features), not empty.")
    return result


def paired_bootstrap(first: ArrayLike, second: ArrayLike, statistic: Statistic = mean, *, seed: int = 0) -> Difference:
    """How much higher the first system scores on the same rows: a paired bootstrap.

    Rows as in `bootstrap`. Each replicate uses the same rows for both, so the difficulty of rows cancels out.
    p is two-sided: twice the fraction of replicates on the other side of 0 than the difference.
    """
    ours, theirs = _features(first), _features(second)
    if ours.shape != theirs.shape:
        raise InputError(
            f"Rows of shapes {ours.shape} and {theirs.shape} are not pairs; expected the same rows for both systems."
        )
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
    """Exact two-sided p of McNemar's test (1947), from the numbers of rows that only one system gets right."""
    many, few = max(only_first, only_second), min(only_first, only_second)
    if few < 0:
        raise InputError(f"{only_first} and {only_second} rows were given; expected counts.")
    count = many + few
    logs = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(few + 1)]
    return min(1.0, 2 * math.fsum(math.exp(log - count * math.log(2)) for log in logs))


def resample_counts(counts: NDArray[np.int64], *, width: int = 1, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """Bootstrap of counts: resampled counts of shape (replicates, cells), a few replicates at a time.

    width: numbers computed from one replicate, which limits the replicates per step.
    With more than 16,777 cells there are fewer than 1,000 replicates, but at least 100, to limit the time.
    """
    rows, generator = int(counts.sum()), np.random.default_rng(seed)
    left, size = int(np.clip(CELL_DRAWS // max(len(counts), 1), 100, REPLICATES)), max(len(counts), width, 1)
    while left:
        some = min(left, max(1, CELLS // size))
        yield generator.multinomial(rows, counts / rows, size=some)
        left -= some


def spearman_interval(value: float, first: ArrayLike, second: ArrayLike) -> Score:
    """The interval of Spearman's correlation, by the infinitesimal jackknife on Fisher's scale.

    Ranks depend on all rows, so a bootstrap would have to rank every replicate. Instead, the derivative of the
    correlation by the weight of each row has a closed form, also with ties; the variance is the sum of its squares.
    """
    moves = spearman_derivatives(value, first, second)
    if not moves.any() or abs(value) >= 1:
        return Score(value, value, value)
    error = math.sqrt(float(np.square(moves).sum()))
    middle, half = math.atanh(value), Z * error / (1 - value**2)
    return Score(value, math.tanh(middle - half), math.tanh(middle + half))


def spearman_derivatives(value: float, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """The derivative of Spearman's correlation by the weight of each row; 0 if one side is constant."""
    x, y = _groups(first), _groups(second)
    left, right = (_signs(part, np.ones(len(part))) for part in (x, y))
    ours, theirs = float(np.square(left).sum()), float(np.square(right).sum())
    if ours == 0 or theirs == 0:
        return np.zeros(len(x))
    moves: NDArray[np.float64] = (left * right - _signs(x, right) - _signs(y, left)) / math.sqrt(ours * theirs)
    moves -= value / 2 * (left**2 - 2 * _signs(x, left)) / ours
    moves -= value / 2 * (right**2 - 2 * _signs(y, right)) / theirs
    return moves


def _groups(values: ArrayLike) -> NDArray[np.intp]:
    return np.unique(np.asarray(values, np.float64), return_inverse=True)[1]


def _signs(groups: NDArray[np.intp], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half of the sum over lower rows, minus half of the sum over higher rows; of ones it is the centered rank."""
    sums = np.bincount(groups, shares)
    result: NDArray[np.float64] = (np.cumsum(sums) - sums / 2 - sums.sum() / 2)[groups]
    return result
