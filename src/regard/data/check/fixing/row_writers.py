"""Write rows to a file, in their original format if it can be written."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from regard.data.formats.quoting import csv_row
from regard.data.schema import Schema
from regard.errors import InputError, shorten

# Writes a row, and returns its content for comparison when it is read again: cells or JSON, empty for other formats.
WriteRow = Callable[[dict[str, Any]], str]
USE_JSON_LINES = "Use a file name that ends in .jsonl."
FORMAT_NAMES = {"conll": "CoNLL", "text": "plain text", "lines": "plain text"}
SUFFIX_HINTS = {"conll": ".conll or .jsonl", "text": ".txt", "lines": ".txt"}
FORMAT_BY_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}
SEPARATOR = "\x1f"  # between compared values
STYLES = {"csv": ("default", "quoted"), "tsv": ("default", "quoted"), "conll": ("default", "tabs")}
LINE_BREAKS = re.compile(r"[\t\r\n]+")
BLANK_LINES = re.compile(r"\n\s*\n")


def written_format(suffix: str, schema: Schema) -> str:
    """The format of the copy: by the suffix of its name (tables, Parquet, JSON lines), else that of the data.

    Raises InputError if the rows cannot be written in that format.
    """
    default = {"json": "jsonl", "aligned": "tsv"}.get(schema.format, schema.format)
    if suffix in (".xlsx", ".xlsm"):
        raise InputError("the copy cannot be written as an Excel workbook. Use a file name that ends in .csv.")
    if default == "conll" and suffix == ".jsonl":
        return "jsonl"
    if default not in FORMAT_NAMES:
        return FORMAT_BY_SUFFIX.get(suffix, default)
    if suffix in FORMAT_BY_SUFFIX:
        raise InputError(
            f"{FORMAT_NAMES[default]} cannot be written as {suffix}. "
            f"Use a file name that ends in {SUFFIX_HINTS[default]}."
        )
    return default


def written_columns(format: str, schema: Schema) -> Mapping[str, str]:
    """Column names in the copy, by role. Columns of CoNLL, which are numbered, get names in JSON."""
    if (schema.format, format) == ("conll", "jsonl"):
        return {role: role for role in schema.columns}
    return schema.columns


def written_styles(format: str) -> tuple[str, ...]:
    """Ways to write a format: the default, and if that may be ambiguous a second one that is not."""
    return STYLES.get(format, ("default",))


def is_quoted(format: str, schema: Schema) -> bool:
    return schema.quoting if schema.format == format else True


def fit_format(row: dict[str, Any], format: str, schema: Schema) -> dict[str, Any]:
    """The row with line breaks replaced by spaces if the format cannot represent them."""
    if format == "text":
        return row | {"text": BLANK_LINES.sub("\n", row["text"]).strip("\r\n")}
    if format == "lines" or (format == "tsv" and not is_quoted(format, schema)):
        return {name: _on_one_line(value) if isinstance(value, str) else value for name, value in row.items()}
    return row


def _on_one_line(value: str) -> str:
    if not LINE_BREAKS.search(value):
        return value
    return LINE_BREAKS.sub(" ", value.strip("\t\r\n"))


@contextlib.contextmanager
def open_writer(path: Path, format: str, schema: Schema, style: str) -> Iterator[WriteRow]:
    """A function that writes one row to the file."""
    if format == "parquet":
        with _parquet_writer(path) as write:
            yield write
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if format in ("csv", "tsv"):
            yield _table_writer(file, schema, format, style)
        elif format == "conll":
            yield _conll_writer(file, style)
        elif format in ("text", "lines"):
            yield _text_writer(file, format)
        else:
            yield _json_writer(file)


def _json_writer(file: TextIO) -> WriteRow:
    def write(row: dict[str, Any]) -> str:
        line = json.dumps(row, ensure_ascii=False, default=str)
        file.write(f"{line}\n")
        return line

    return write


def _text_writer(file: TextIO, format: str) -> WriteRow:
    end = "\n\n" if format == "text" else "\n"

    def write(row: dict[str, Any]) -> str:
        file.write(row["text"] + ("\n" if row.get("continues") else end))
        return ""

    return write


def _table_writer(file: TextIO, schema: Schema, format: str, style: str) -> WriteRow:
    """With the separator, header and quotes of the original table, if it has the same format."""
    if schema.format == format:
        delimiter = schema.delimiter
        header = schema.header
    else:
        delimiter = "," if format == "csv" else "\t"
        header = True
    quoting = is_quoted(format, schema) or style == "quoted"
    names: list[str] = []

    def write_line(values: list[str]) -> None:
        line = delimiter.join(values) + "\n"
        file.write(csv_row(values, delimiter, all_quoted=style == "quoted") if quoting else line)

    def write(row: dict[str, Any]) -> str:
        if not names:
            names.extend(row)
            if header:
                write_line(names)
        cells = [_cell(value) for value in _in_columns(row, names)]
        write_line(cells)
        return SEPARATOR.join(cells)

    return write


def _in_columns(row: dict[str, Any], names: list[str]) -> list[Any]:
    """The values of a row in the columns of the first row; None for missing values."""
    if len(row) == len(names) and list(row) == names:
        return list(row.values())
    known = set(names)
    new_name = next((name for name in row if name not in known), None)
    if new_name is not None:
        raise InputError(
            f'a row has "{shorten(new_name, 60)}", which the first row does not have, so a table would lose it. '
            f"{USE_JSON_LINES}"
        )
    return [row.get(name) for name in names]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _conll_writer(file: TextIO, style: str) -> WriteRow:
    """Columns separated by spaces, or by tabs if a cell of the first sentence is empty or contains a space."""
    tabs: bool | None = True if style == "tabs" else None

    def write(row: dict[str, Any]) -> str:
        nonlocal tabs
        words = list(zip(*(value for name, value in row.items() if name != "line"), strict=True))
        if tabs is None:
            tabs = any(not cell or " " in cell for word in words for cell in word)
        file.writelines(("\t" if tabs else " ").join(word) + "\n" for word in words)
        file.write("\n")
        return ""

    return write


@contextlib.contextmanager
def _parquet_writer(path: Path) -> Iterator[WriteRow]:
    """Writes groups of rows, so that memory does not grow."""
    import pyarrow
    import pyarrow.parquet

    pending: list[dict[str, Any]] = []
    names: list[str] = []
    file = None

    def flush() -> None:
        nonlocal file
        try:
            table = pyarrow.Table.from_pylist(pending, schema=None if file is None else file.schema)
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            reason = shorten(str(error)).rstrip(".")
            raise InputError(f"the values of a column have different types: {reason}. {USE_JSON_LINES}") from error
        if file is None:
            fields = [
                column.with_type(pyarrow.string()) if pyarrow.types.is_null(column.type) else column
                for column in table.schema
            ]
            table = table.cast(pyarrow.schema(fields))  # a column without values so far may have texts later
            file = pyarrow.parquet.ParquetWriter(path, table.schema)
        file.write_table(table)
        pending.clear()

    def write(row: dict[str, Any]) -> str:
        if not names:
            names.extend(row)
        pending.append(dict(zip(names, _in_columns(row, names), strict=True)))
        if len(pending) >= 4096:
            flush()
        return ""

    try:
        yield write
        flush()
    finally:
        if file is not None:
            file.close()
