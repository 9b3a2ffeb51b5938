"""Rows that belong together: of one group column, one paragraph, one source sentence or one document.

Such rows are alike, so their errors are too: 10 questions about one paragraph say less than 10 paragraphs. Whole groups
are resampled, which makes intervals up to three times as wide as those that treat the rows as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.records import AnswerRecord, Record, TagRecord, TranslateRecord
from regard.errors import pluralize
from regard.metrics.paired.rows import group_numbers
from regard.metrics.paired.significance import MIN_UNITS


@dataclass(frozen=True)
class RowGroups:
    """The number of each row's group; None if every row is its own. `note` says what was done, in words."""

    numbers: NDArray[np.intp] | None = None
    note: str | None = None


def row_groups(keys: Sequence[tuple[str, str] | None]) -> RowGroups:
    """Groups from the keys of `group_key`, one for each row; a row without a key is a group of its own."""
    if all(key is None for key in keys):
        return RowGroups()
    numbers = group_numbers([(number,) if key is None else key for number, key in enumerate(keys)])
    groups = int(numbers.max()) + 1
    if groups == len(keys):
        return RowGroups()
    what = next(key[0] for key in keys if key is not None)
    if groups < MIN_UNITS and what != "group":
        note = f"rows share only {pluralize(groups, what)}, too few to resample; rows are treated as independent"
        return RowGroups(None, note)
    return RowGroups(numbers, f"{pluralize(groups, what)} of rows are resampled as a whole")


def group_key(record: Record) -> tuple[str, str] | None:
    """What a row is grouped by, and its group; None for a row that shares nothing."""
    if record.group is not None:
        return "group", record.group
    if isinstance(record, AnswerRecord):
        return "paragraph", record.context
    if isinstance(record, TranslateRecord):
        return "source sentence", record.source
    if isinstance(record, TagRecord) and record.document is not None:
        return "document", record.document
    return None
