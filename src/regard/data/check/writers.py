"""Rows back into a file, in the format they came in where that can be written."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from regard.data.recognise import Recognised
from regard.errors import InputError

Write = Callable[[dict[str, Any]], None]
LINES = "Give the copy a name that ends in .jsonl."


@contextlib.contextmanager
def writer(path: Path, suffix: str, found: Recognised) -> Iterator[Write]:
    """What writes a row. The end of the name decides between tables and JSON lines; else it is as it was read."""
    formats = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}
    usual = {"json": "jsonl", "aligned": "tsv"}.get(found.format, found.format)
    format = usual if usual in ("conll", "text", "lines") else formats.get(suffix, usual)
    if format == "parquet":
        with _parquet(path) as write:
            yield write
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if format in ("csv", "tsv"):
            yield _table(file, found, format)
        elif format == "conll":
            yield lambda row: _sentence(file, row)
        elif format in ("text", "lines"):
            end = "\n\n" if format == "text" else "\n"
            yield lambda row: _put(file, row["text"] + ("\n" if row.get("continues") else end))
        else:
            yield lambda row: _put(file, json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _put(file: TextIO, text: str) -> None:
    file.write(text)


def _table(file: TextIO, found: Recognised, format: str) -> Write:
    """With the quotes and the separator of the table that was read, if it was one of that format."""
    same = found.format == format
    delimiter = found.delimiter if same else ("," if format == "csv" else "\t")
    header = found.header if same else True
    quoting = found.quoting if same else True
    lines = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    names: list[str] = []

    def put(values: list[str]) -> None:
        lines.writerow(values) if quoting else _put(file, delimiter.join(values) + "\n")

    def write(row: dict[str, Any]) -> None:
        if not names:
            names.extend(row)
            if header:
                put(names)
        put([_cell(value) for value in _in_columns(row, names)])

    return write


def _in_columns(row: dict[str, Any], names: list[str]) -> list[Any]:
    """The values of a row of JSON in the columns of the first; None where it has none."""
    other = next((name for name in row if name not in names), None)
    if other is not None:
        raise InputError(f'a row has "{other}", which the first one has not, so a table would lose it. {LINES}')
    return [row.get(name) for name in names]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _sentence(file: TextIO, row: dict[str, Any]) -> None:
    columns = [value for name, value in row.items() if name != "line"]
    file.writelines(
        "\t".join(word) + "\n" if any(" " in cell for cell in word) else " ".join(word) + "\n"
        for word in zip(*columns, strict=True)
    )
    file.write("\n")


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
        except pyarrow.ArrowException as error:
            raise InputError(
                f"the values of a column are not of one kind: {str(error).rstrip('.')}. {LINES}"
            ) from error
        if file is None:
            fields = [
                one.with_type(pyarrow.string()) if pyarrow.types.is_null(one.type) else one for one in table.schema
            ]
            table = table.cast(pyarrow.schema(fields))  # a column without a value so far may have texts later
            file = pyarrow.parquet.ParquetWriter(path, table.schema)
        file.write_table(table)
        held.clear()

    def write(row: dict[str, Any]) -> None:
        if not names:
            names.extend(row)
        held.append(dict(zip(names, _in_columns(row, names), strict=True)))
        if len(held) >= 4096:
            flush()

    try:
        yield write
        flush()
    finally:
        if file is not None:
            file.close()
