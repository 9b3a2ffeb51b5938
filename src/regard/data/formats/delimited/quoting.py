"""A row of values as one row of CSV or TSV that every reader of such files reads back as it was."""

from __future__ import annotations

from collections.abc import Sequence


def csv_row(values: Sequence[str], delimiter: str, *, all_quoted: bool = False) -> str:
    """The values with quotes where they are needed, or around all of them, and a line end."""
    if len(values) == 1 and not values[0].strip():
        return f'"{values[0]}"\n'  # a blank line is no row
    return delimiter.join(quoted(value) if all_quoted or needs(value, delimiter) else value for value in values) + "\n"


def quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def needs(value: str, delimiter: str) -> bool:
    """Whether a value would be read as something else without quotes: also a BOM, which readers take off."""
    return '"' in value or delimiter in value or "\n" in value or "\r" in value or value.startswith("\ufeff")
