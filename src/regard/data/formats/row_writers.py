"""Write rows in the format they were read in: the `write` of each format.

Each function opens a file and gives a function that writes one row. That function returns what must be read back from
the file: the cells of the row or its JSON, or "" if only the record has to be the same.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from regard.data.formats.delimited.quoting import csv_row
from regard.data.schema.schema import Schema
from regard.errors import InputError, shorten

WriteRow = Callable[[Mapping[str, Any]], str]

CELL_SEPARATOR = "\x1f"  # between the cells of a row that are compared
USE_JSON_LINES = "Use a file name that ends in .jsonl."
PARQUET_GROUP = 4096  # rows written together


def is_quoted(name: str, schema: Schema) -> bool:
    """Whether a table is written with quotes: as it was read, and always if it was read from another format."""
    return schema.quoting if schema.format == name else True


@contextlib.contextmanager
def open_json_lines(path: Path, schema: Schema, style: str) -> Iterator[WriteRow]:
    """One JSON object per line."""
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(row: Mapping[str, Any]) -> str:
            line = json.dumps(row, ensure_ascii=False, default=str)
            file.write(f"{line}\n")
            return line

        yield write


@contextlib.contextmanager
def open_documents(path: Path, schema: Schema, style: str) -> Iterator[WriteRow]:
    """Texts with a blank line between them."""
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(row: Mapping[str, Any]) -> str:
            file.write(row["text"] + ("\n" if row.get("continues") else "\n\n"))
            return ""

        yield write


@contextlib.contextmanager
def open_lines(path: Path, schema: Schema, style: str) -> Iterator[WriteRow]:
    """One text per line."""
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(row: Mapping[str, Any]) -> str:
            file.write(row["text"] + "\n")
            return ""

        yield write


def open_csv(path: Path, schema: Schema, style: str) -> contextlib.AbstractContextManager[WriteRow]:
    """A CSV table; the style "quoted" encloses every value in quotes."""
    return _open_table(path, schema, style, "csv", ",")


def open_tsv(path: Path, schema: Schema, style: str) -> contextlib.AbstractContextManager[WriteRow]:
    """A TSV table; the style "quoted" encloses every value in quotes."""
    return _open_table(path, schema, style, "tsv", "\t")


@contextlib.contextmanager
def _open_table(path: Path, schema: Schema, style: str, name: str, default_delimiter: str) -> Iterator[WriteRow]:
    """With the quotes and the delimiter of the table that was read, if it was one of the same format."""
    same = schema.format == name
    delimiter = schema.delimiter if same else default_delimiter
    header = schema.header if same else True
    all_quoted = style == "quoted"
    quoting = is_quoted(name, schema) or all_quoted
    names: list[str] = []
    with path.open("w", encoding="utf-8", newline="") as file:

        def write_cells(cells: list[str]) -> None:
            line = csv_row(cells, delimiter, all_quoted=all_quoted) if quoting else delimiter.join(cells) + "\n"
            file.write(line)

        def write(row: Mapping[str, Any]) -> str:
            if not names:
                names.extend(row)
                if header:
                    write_cells(names)
            cells = [_cell(value) for value in _in_columns(row, names)]
            write_cells(cells)
            return CELL_SEPARATOR.join(cells)

        yield write


def _in_columns(row: Mapping[str, Any], names: list[str]) -> list[Any]:
    """The values of a row in the columns of the first row; None if it has no value for a column."""
    if len(row) == len(names) and list(row) == names:
        return list(row.values())
    known = set(names)
    other = next((name for name in row if name not in known), None)
    if other is not None:
        raise InputError(
            f'a row has "{shorten(other, 60)}", which the first row does not have, so a table would lose it. '
            f"{USE_JSON_LINES}"
        )
    return [row.get(name) for name in names]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@contextlib.contextmanager
def open_sentences(path: Path, schema: Schema, style: str) -> Iterator[WriteRow]:
    """CoNLL columns separated by spaces; by tabs if a cell of the first sentence is empty or contains a space.

    "document" is no column: a sentence with another value than the one before it starts a document.
    """
    tabs: bool | None = True if style == "tabs" else None
    document: str | None = None
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(row: Mapping[str, Any]) -> str:
            nonlocal tabs, document
            words = list(zip(*(value for name, value in row.items() if name not in ("line", "document")), strict=True))
            if tabs is None:
                tabs = any(not cell or " " in cell for word in words for cell in word)
            separator = "\t" if tabs else " "
            if row.get("document") != document:
                document = row.get("document")
                file.write(separator.join(["-DOCSTART-", *["O"] * (len(words[0]) - 1)]) + "\n\n")
            file.writelines(separator.join(word) + "\n" for word in words)
            file.write("\n")
            return ""

        yield write


class _ParquetFile:
    """Collects rows and writes them in groups, so that memory does not grow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.file: Any = None

    def write(self, row: Mapping[str, Any]) -> str:
        if not self.names:
            self.names.extend(row)
        self.rows.append(dict(zip(self.names, _in_columns(row, self.names), strict=True)))
        if len(self.rows) >= PARQUET_GROUP:
            self.flush()
        return ""

    def flush(self) -> None:
        import pyarrow
        import pyarrow.parquet

        try:
            table = pyarrow.Table.from_pylist(self.rows, schema=None if self.file is None else self.file.schema)
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            reason = shorten(str(error)).rstrip(".")
            raise InputError(f"the values of a column have different types: {reason}. {USE_JSON_LINES}") from error
        if self.file is None:
            columns = [
                one.with_type(pyarrow.string()) if pyarrow.types.is_null(one.type) else one for one in table.schema
            ]
            table = table.cast(pyarrow.schema(columns))  # a column without a value so far may have texts later
            self.file = pyarrow.parquet.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)
        self.rows.clear()


@contextlib.contextmanager
def open_parquet(path: Path, schema: Schema, style: str) -> Iterator[WriteRow]:
    """A Parquet file with the columns of the first row."""
    parquet = _ParquetFile(path)
    try:
        yield parquet.write
        parquet.flush()
    finally:
        if parquet.file is not None:
            parquet.file.close()
