"""A row of a file or table: its values by column name and its location, before it becomes a record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from regard.errors import DataError

MAX_LINE_BYTES = 1 << 27  # of one line, or of one quoted field that spans several lines


class Place(NamedTuple):
    """The location of a row: its file, and its line or row number, both counted from 1."""

    file: str
    line: int | None = None
    row: int | None = None

    def error(
        self,
        message: str,
        *,
        column: str | None = None,
        expected: str | None = None,
        fix: str | None = None,
        kind: str = "bad-row",
    ) -> DataError:
        """An error about this location, to be raised by the caller."""
        return DataError(
            message, file=self.file, line=self.line, row=self.row, column=column, expected=expected, fix=fix, kind=kind
        )

    def value_error(self, value: Any, *, kind: str = "bad-row", **details: Any) -> DataError:
        """An error about a value that cannot be used; its kind is "missing-value" where there is none.

        details: further arguments of `error`.
        """
        return self.error(f"is {describe_value(value)}", kind="missing-value" if value is None else kind, **details)


NOWHERE = Place("a record")


class Row(NamedTuple):
    """The values of a row by column name. `raw` is the row as written in the file, "" for formats without lines.

    document: the document that the row is a part of, in formats with document boundaries.
    """

    place: Place
    values: dict[str, Any]
    raw: str
    document: str | None = None

    def value(self, column: str) -> Any:
        """The value of a column that every row must have."""
        try:
            return self.values[column]
        except KeyError:
            columns = ", ".join(self.values) or "nothing"
            raise self.place.error(
                f'there is no "{column}" (there is {columns:.80})',
                expected=f'a "{column}" in every row',
                kind="missing-value",
            ) from None

    def text(self, column: str) -> str:
        """The value of a column that must be a string."""
        value = self.value(column)
        if not isinstance(value, str):
            raise self.place.value_error(value, column=column, expected="a text")
        return value

    def strings(self, column: str, *, kind: str = "bad-row") -> Sequence[str]:
        """A list of strings, or a string split at spaces. `kind` is that of an error about them."""
        value = parse_json_cell(self.value(column))
        if isinstance(value, str):
            return value.split()
        if not isinstance(value, list):
            raise self.place.value_error(value, column=column, expected="a list of strings", kind=kind)
        for number, item in enumerate(value):
            if not isinstance(item, str):
                fix = "Write the names of tags, not their numbers." if isinstance(item, int) else None
                raise self.place.value_error(
                    item, column=f"{column}[{number}]", expected="a string", fix=fix, kind=kind
                )
        return value


class ExcludedRow(DataError):
    """A row that the file itself marks as not to be used, such as a rejected annotation. It is counted, not raised."""


OnBadRow = Callable[
    [DataError, str], None
]  # called with each unusable row: raises the error, or records it and returns


def parse_json_cell(value: Any) -> Any:
    """The value itself, or for a table cell that contains a JSON list or object the parsed JSON."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def describe_value(value: Any) -> str:
    """A value, shortened for an error message."""
    if value is None:
        return "missing (null)"
    kind = type(value).__name__
    return f'"{value:.40}"' if isinstance(value, str) else f"{value!r:.40} ({kind})"
