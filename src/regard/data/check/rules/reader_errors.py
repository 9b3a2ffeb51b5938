"""What the reader says of rows it cannot use, as findings."""

from __future__ import annotations

from regard.data.check.collect import FindingCollector
from regard.data.check.kinds import KINDS
from regard.data.records import Place
from regard.errors import DataError

# The first whose words are in the message.
SAID = (
    ("is a NUL", "nul"),
    ("surrogate pair", "surrogate"),
    ("is not UTF-8", "not-utf8"),
    ("is not JSON", "not-json"),
    ("double quote", "quotes"),
    ("carriage return", "quotes"),
    ("the row has", "wrong-columns"),
    ("the line has", "wrong-columns"),
    ("overlaps the one before", "entity-overlap"),
    ("is not a part of the text", "entity-outside"),
    ("begins or ends with a space", "entity-space"),
    ("tokens but", "tag-count"),
    ("missing (null)", "missing-value"),
    ('there is no "', "missing-value"),
)


def kind_of(error: DataError) -> str:
    column = error.column or ""
    for words, kind in SAID:
        if words in error.message:
            return kind
    if column.startswith("entities"):
        return "entity-text" if error.message.startswith("says") else "entity"
    if column == "tags" or column.startswith("tags["):
        return "broken-tags"
    if "the answer" in error.message and ("is not at" in error.message or " stands " in error.message):
        return "answer-place"
    if "answer" in error.message or "question is marked" in error.message:
        return "answer"
    return "bad-label" if "label" in column or "label" in (error.fix or "") else "bad-row"


def add_reader_error(gather: FindingCollector, error: DataError, split: str, *, kind: str | None = None) -> None:
    """A row, or a file where `kind` says so, that the reader gave up."""
    named = kind or kind_of(error)
    expected = "" if error.expected is None else f"; expected {error.expected}"
    column = "" if error.column is None else f"column {error.column}: "
    place = Place(error.file or "the data", error.line, error.row)
    fix = error.fix or KINDS[named].fix
    gather.add(named, place, f"{column}{error.message}{expected}", split=split, fix=fix)
