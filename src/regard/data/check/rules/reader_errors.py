"""Findings for rows that the reader cannot use."""

from __future__ import annotations

from regard.data.check.collect import FindingCollector
from regard.data.check.kinds import KINDS
from regard.data.records import Place
from regard.errors import DataError

# Kind of finding by a part of the error message; the first match counts.
KIND_BY_MESSAGE = (
    ("is a NUL", "nul"),
    ("surrogate pair", "surrogate"),
    ("is not UTF-8", "not-utf8"),
    ("is not JSON", "not-json"),
    ("double quote", "unbalanced-quotes"),
    ("carriage return", "unbalanced-quotes"),
    ("the row has", "wrong-columns"),
    ("the line has", "wrong-columns"),
    ("overlaps the one before", "entity-overlap"),
    ("is not a part of the text", "entity-outside"),
    ("begins or ends with a space", "entity-space"),
    ("tokens but", "tag-count"),
    ("missing (null)", "missing-value"),
    ('there is no "', "missing-value"),
)


def finding_kind(error: DataError) -> str:
    """The kind of finding for an error of the reader."""
    column = error.column or ""
    for part, kind in KIND_BY_MESSAGE:
        if part in error.message:
            return kind
    if column.startswith("entities"):
        return "entity-mismatch" if error.message.startswith("says") else "bad-entity"
    if column == "tags" or column.startswith("tags["):
        return "broken-tags"
    if "the answer" in error.message and ("is not at" in error.message or " stands " in error.message):
        return "answer-position"
    if "answer" in error.message or "question is marked" in error.message:
        return "bad-answer"
    return "bad-label" if "label" in column or "label" in (error.fix or "") else "bad-row"


def add_reader_error(collector: FindingCollector, error: DataError, split: str, *, kind: str | None = None) -> None:
    """Add a finding for a row that cannot be used, or with `kind` for a file that cannot be read."""
    named = kind or finding_kind(error)
    expected = "" if error.expected is None else f"; expected {error.expected}"
    column = "" if error.column is None else f"column {error.column}: "
    place = Place(error.file or "the data", error.line, error.row)
    fix = error.fix or KINDS[named].fix
    collector.add(named, place, f"{column}{error.message}{expected}", split=split, fix=fix)
