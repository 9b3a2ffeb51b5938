"""Findings for rows that the reader cannot use."""

from __future__ import annotations

from regard.data.check.collect import FindingCollector
from regard.data.check.kinds import KINDS
from regard.data.records import Place
from regard.errors import DataError


def add_reader_error(collector: FindingCollector, error: DataError, split: str, *, kind: str | None = None) -> None:
    """Add a finding for a row that cannot be used, or with `kind` for a file that cannot be read."""
    named = kind or error.kind
    expected = "" if error.expected is None else f"; expected {error.expected}"
    column = "" if error.column is None else f"column {error.column}: "
    place = Place(error.file or "the data", error.line, error.row)
    fix = error.fix or KINDS[named].fix
    collector.add(named, place, f"{column}{error.message}{expected}", split=split, fix=fix)
