"""The numbers of each row whose sums give the scores.

F1, Matthews correlation, BLEU and Pearson's correlation are no means over rows, but functions of sums over rows. With
the numbers of each row in a table, resampling rows is adding rows, and thousands of resamples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError, did_you_mean
from regard.metrics.confidence import Statistic, mean

Numbers = NDArray[np.float64]
NO_LIMITS = (-np.inf, np.inf)
AT_LEAST_0 = (0.0, np.inf)


@dataclass(frozen=True)
class RowScore:
    """One score: which columns of the table it adds up, and its value from their sums (columns first).

    swappable: whether two models can exchange their rows, as approximate randomization does. The linear approximation
        of Spearman's correlation cannot.
    limits: the lowest and the highest possible value.
    """

    columns: tuple[int, ...]
    statistic: Statistic = mean
    swappable: bool = True
    higher_is_better: bool = True
    limits: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class RowTable:
    """Numbers (rows, columns) of one model, and the scores that are computed from their sums; the main one first."""

    features: Numbers
    scores: Mapping[str, RowScore]

    @property
    def rows(self) -> int:
        return len(self.features)

    @property
    def main(self) -> str:
        """The score that matters most."""
        return next(iter(self.scores))

    def score(self, name: str) -> RowScore:
        if name not in self.scores:
            raise InputError(f'"{name}" is not a score of these rows.{did_you_mean(name, self.scores)}')
        return self.scores[name]

    def columns(self, name: str) -> Numbers:
        """The columns of one score (rows, columns)."""
        return self.features[:, list(self.score(name).columns)]

    def value(self, name: str, rows: NDArray[Any] | slice = slice(None)) -> float:
        """A score, of some rows only if they are given."""
        return float(self.score(name).statistic(self.columns(name)[rows].sum(0)))

    def values(self) -> dict[str, float]:
        """Every score of all rows."""
        return {name: self.value(name) for name in self.scores}


@runtime_checkable
class HasRows(Protocol):
    """A meter that can keep the numbers of each row; only then its scores can be compared in pairs."""

    def keep_rows(self) -> None:
        """Keep the numbers of every row that is added from now on."""

    def row_table(self) -> RowTable:
        """The rows that were added since `keep_rows`."""


def row_table(meter: object) -> RowTable:
    """The rows of a meter; an error where it keeps none."""
    if not isinstance(meter, HasRows):
        raise InputError(
            f"{type(meter).__name__} keeps no rows, so its scores cannot be compared in pairs. Give it the methods "
            "keep_rows and row_table, see regard.metrics.paired.rows."
        )
    return meter.row_table()


def joined(parts: Sequence[RowTable]) -> RowTable:
    """Tables of the same rows side by side; parts with another number of rows are left out."""
    first = parts[0]
    same = [part for part in parts if part.rows == first.rows]
    scores: dict[str, RowScore] = {}
    start = 0
    for part in same:
        for name, score in part.scores.items():
            moved = tuple(start + column for column in score.columns)
            scores.setdefault(name, replace(score, columns=moved))
        start += part.features.shape[1]
    return RowTable(np.hstack([part.features for part in same]), scores)


def group_numbers(groups: Sequence[object]) -> NDArray[np.intp]:
    """Groups by name as numbers from 0, in the order in which they occur."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(group, len(known)) for group in groups], np.intp)


def group_sums(features: Numbers, groups: ArrayLike | None) -> Numbers:
    """Sums (groups, columns) over the rows of each group: the units that are resampled. No groups: the rows."""
    if groups is None:
        return features
    numbers = np.asarray(groups, np.intp)
    if len(numbers) != len(features):
        raise InputError(f"{len(numbers)} groups were given for {len(features)} rows; expected one for each row.")
    result = np.zeros((int(numbers.max(initial=-1)) + 1, features.shape[1]))
    np.add.at(result, numbers, features)
    return result
