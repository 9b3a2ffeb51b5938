"""A record in the form that the rules use: its texts by field, its input and its annotation."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.records import Place, Record


@dataclass(slots=True)
class CheckedRow:
    """A row to check.

    texts: (field, text) pairs, such as ("question", "Where?").
    input_text: what the model reads, as one string.
    annotation: label, tags, answers or translation, as one string.
    """

    record: Record
    split: str
    place: Place
    texts: tuple[tuple[str, str], ...]
    input_text: str
    annotation: str


def checked_row(record: Record, split: str) -> CheckedRow:
    """The row of a record, with its inputs joined by a separator that no text contains."""
    input_text = "\x1f".join(record.input_texts)
    return CheckedRow(record, split, record.place, record.texts, input_text, record.annotation)
