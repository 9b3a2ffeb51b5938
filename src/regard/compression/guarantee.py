"""Whether a candidate keeps the score of its teacher: a paired test against a floor, on rows that chose nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, setting
from regard.metrics.confidence import Score
from regard.metrics.paired.resample import bootstrap_scores, expanded_interval
from regard.metrics.paired.rows import RowTable

LEVEL = 0.95
MIN_ROWS = 30
TYPICAL_CHANGES = 0.02  # fraction of rows that int8 answers differently, for the estimate before anything is measured


@dataclass(frozen=True)
class FloorTest:
    """A candidate beside its teacher on the same rows.

    margin: candidate minus floor times teacher, with its interval. The floor is kept if even its lower end is above 0.
    """

    difference: Score  # candidate minus teacher
    margin: Score
    holds: bool
    rows: int
    rows_needed: int | None  # with which a margin of this size would be shown; None if it is below 0


def check_floor(floor: float) -> None:
    """Raise InputError unless the floor is a fraction below 1."""
    if not 0 < floor < 1:
        raise InputError(
            f"{setting('floor')} is {floor:g}, expected the fraction of the score to keep, above 0 and below 1: 0.99."
        )


def compare_to_floor(
    candidate: RowTable,
    teacher: RowTable,
    metric: str,
    floor: float,
    *,
    groups: NDArray[np.intp] | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> FloorTest:
    """Compare a candidate with its teacher; `groups` are rows that are resampled together."""
    ours, theirs = bootstrap_scores([candidate, teacher], metric, groups=groups, seed=seed)
    value, goal = candidate.value(metric), teacher.value(metric)
    units = candidate.rows if groups is None else int(groups.max()) + 1
    difference = expanded_interval(value - goal, ours - theirs, units)
    margin = expanded_interval(value - floor * goal, ours - floor * theirs, units, level=level)
    return FloorTest(difference, margin, margin.low > 0, candidate.rows, _rows_needed(margin, candidate.rows))


def _rows_needed(margin: Score, rows: int) -> int | None:
    if margin.value <= 0:
        return None
    width = margin.value - margin.low
    return max(MIN_ROWS, math.ceil(rows * (width / margin.value) ** 2))


def rows_for_floor(floor: float, score: float = 0.9) -> int:
    """About how many test rows prove this floor for a model that answers a few rows differently."""
    return math.ceil((1.96 / ((1 - floor) * score)) ** 2 * TYPICAL_CHANGES)


def check_rows(rows: int, floor: float) -> None:
    """Raise InputError for a test set that cannot prove anything."""
    if rows < MIN_ROWS:
        needed = rows_for_floor(floor)
        more = f", and about {needed:,} for this floor" if needed > MIN_ROWS else ""
        raise InputError(
            f"there are {rows} test rows, too few to prove that {floor:.0%} of the score is kept; expected at least "
            f"{MIN_ROWS}{more}. Give more rows with {setting('test')}."
        )
