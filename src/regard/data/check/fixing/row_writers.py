"""Rows back into a file, in the format they came in where that can be written."""

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

# Writes a row, and returns what must be read back from it: its cells or its JSON; nothing for other formats, of which
# the record alone counts.
Write = Callable[[dict[str, Any]], str]
LINES = "Give the copy a name that ends in .jsonl."
PLAIN = {"conll": "tagged words", "text": "plain text", "lines": "plain text"}
NAMES = {"conll": "a name that ends in .conll or .jsonl", "text": "its own ending", "lines": "its own ending"}
FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}
CELLS = "\x1f"  # between values that are compared
STYLES = {"csv": ("usual", "quoted"), "tsv": ("usual", "quoted"), "conll": ("usual", "tabs")}
BREAK = re.compile(r"[\t\r\n]+")
BLANK_LINES = re.compile(r"\n\s*\n")


def written_format(suffix: str, found: Schema) -> str:
    """The end of the name decides between tables, Parquet and JSON lines; else it is as it was read."""
    usual = {"json": "jsonl", "aligned": "tsv"}.get(found.format, found.format)
    if suffix in (".xlsx", ".xlsm"):
        raise InputError("the copy cannot be written as a workbook. Give it a name that ends in .csv.")
    if usual == "conll" and suffix == ".jsonl":
        return "jsonl"
    if usual in ("conll", "text", "lines") and suffix in FORMATS:
        raise InputError(f"{PLAIN[usual]} cannot be written as {suffix}. Give the copy {NAMES[usual]}.")
    return usual if usual in ("conll", "text", "lines") else FORMATS.get(suffix, usual)


def written_columns(format: str, found: Schema) -> Mapping[str, str]:
    """The columns in the copy: those of CoNLL, which have numbers, get names in JSON."""
    return {role: role for role in found.columns} if (found.format, format) == ("conll", "jsonl") else found.columns


def styles(format: str) -> tuple[str, ...]:
    """Ways to write a format: the usual one, and where that may be ambiguous one that never is."""
    return STYLES.get(format, ("usual",))


def is_quoted(format: str, found: Schema) -> bool:
    return found.quoting if found.format == format else True


def fitting(row: dict[str, Any], format: str, found: Schema) -> dict[str, Any]:
    """The row as the format can hold it: line breaks become spaces where there is no place for them."""
    if format == "text":
        return row | {"text": BLANK_LINES.sub("\n", row["text"]).strip("\r\n")}
    if format == "lines" or (format == "tsv" and not is_quoted(format, found)):
        return {name: _flat(value) if isinstance(value, str) else value for name, value in row.items()}
    return row


def _flat(value: str) -> str:
    return BREAK.sub(" ", value.strip("\t\r\n")) if BREAK.search(value) else value


@contextlib.contextmanager
def writer(path: Path, format: str, found: Schema, style: str) -> Iterator[Write]:
    """What writes a row."""
    if format == "parquet":
        with _parquet(path) as write:
            yield write
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if format in ("csv", "tsv"):
            yield _table(file, found, format, style)
        elif format == "conll":
            yield _sentences(file, style)
        elif format in ("text", "lines"):
            yield _texts(file, format)
        else:
            yield _objects(file)


def _objects(file: TextIO) -> Write:
    def write(row: dict[str, Any]) -> str:
        line = json.dumps(row, ensure_ascii=False, default=str)
        file.write(f"{line}\n")
        return line

    return write


def _texts(file: TextIO, format: str) -> Write:
    end = "\n\n" if format == "text" else "\n"

    def write(row: dict[str, Any]) -> str:
        file.write(row["text"] + ("\n" if row.get("continues") else end))
        return ""

    return write


def _table(file: TextIO, found: Schema, format: str, style: str) -> Write:
    """With the quotes and the separator of the table that was read, if it was one of that format."""
    same = found.format == format
    delimiter = found.delimiter if same else ("," if format == "csv" else "\t")
    header = found.header if same else True
    quoting = is_quoted(format, found) or style == "quoted"
    names: list[str] = []

    def put(values: list[str]) -> None:
        line = delimiter.join(values) + "\n"
        file.write(csv_row(values, delimiter, all_quoted=style == "quoted") if quoting else line)

    def write(row: dict[str, Any]) -> str:
        if not names:
            names.extend(row)
            if header:
                put(names)
        cells = [_cell(value) for value in _in_columns(row, names)]
        put(cells)
        return CELLS.join(cells)

    return write


def _in_columns(row: dict[str, Any], names: list[str]) -> list[Any]:
    """The values of a row of JSON in the columns of the first; None where it has none."""
    if len(row) == len(names) and list(row) == names:
        return list(row.values())
    known = set(names)
    other = next((name for name in row if name not in known), None)
    if other is not None:
        raise InputError(
            f'a row has "{shorten(other, 60)}", which the first one has not, so a table would lose it. {LINES}'
        )
    return [row.get(name) for name in names]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _sentences(file: TextIO, style: str) -> Write:
    """Columns with spaces between them, with tabs if a cell of the first sentence has a space or nothing in it."""
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
def _parquet(path: Path) -> Iterator[Write]:
    """In groups of some rows, so that memory does not grow."""
    import pyarrow
    import pyarrow.parquet

    held: list[dict[str, Any]] = []
    names: list[str] = []
    file = None

    def flush() -> None:
        nonlocal file
        try:
            table = pyarrow.Table.from_pylist(held, schema=None if file is None else file.schema)
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            reason = shorten(str(error)).rstrip(".")
            raise InputError(f"the values of a column are not of one kind: {reason}. {LINES}") from error
        if file is None:
            fields = [
                one.with_type(pyarrow.string()) if pyarrow.types.is_null(one.type) else one for one in table.schema
            ]
            table = table.cast(pyarrow.schema(fields))  # a column without a value so far may have texts later
            file = pyarrow.parquet.ParquetWriter(path, table.schema)
        file.write_table(table)
        held.clear()

    def write(row: dict[str, Any]) -> str:
        if not names:
            names.extend(row)
        held.append(dict(zip(names, _in_columns(row, names), strict=True)))
        if len(held) >= 4096:
            flush()
        return ""

    try:
        yield write
        flush()
    finally:
        if file is not None:
            file.close()
