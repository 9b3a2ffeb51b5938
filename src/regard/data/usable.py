"""Rows that can be read, but neither trained nor scored on: without a label, or with an empty text."""

from __future__ import annotations

from collections.abc import Callable

from regard.data.records import ClassifyRecord, PairRecord, Record
from regard.data.schema.schema import Schema


def usable_check(schema: Schema) -> Callable[[Record], None]:
    """A function that raises DataError for a record with an empty text, or without a label where others have one."""
    labeled = "label" in schema.columns or bool(schema.style.one_hot)

    def check(record: Record) -> None:
        if labeled and isinstance(record, ClassifyRecord | PairRecord) and record.label is None:
            raise record.place.error("this row has no label", fix="Label it, or remove it.")
        if has_empty_text(record):
            raise record.place.error("this row has an empty text", fix="Complete it, or remove it.")

    return check


def has_empty_text(record: Record) -> bool:
    """Whether a text to classify, or one of a pair, has no visible character."""
    if isinstance(record, PairRecord):
        return not record.first.strip() or not record.second.strip()
    return isinstance(record, ClassifyRecord) and not record.text.strip()
