"""Fields of records, for tests of readers."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from regard.data.records import Record


def fields(records: Iterable[Record], *names: str) -> list[Any]:
    """These fields of every record: its value for one name, a tuple of values for several."""
    return list(map(attrgetter(*names), records))
