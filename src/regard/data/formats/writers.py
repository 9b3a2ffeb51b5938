"""Write rows to a file in the format of its suffix: CSV, TSV, JSON lines or Parquet.

Rows are first written as JSON lines, and become a table when all of them are there: only then all columns, and what
kind of values each holds, are known. Memory does not grow with the number of rows.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.data.atomic import atomic_path, atomic_text_file, is_stream, open_stream
from regard.data.sources.sources import PACKED
from regard.errors import InputError

if TYPE_CHECKING:
    import pyarrow

FORMATS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
ALTERNATIVES = {".xlsx": ".csv", ".xls": ".csv", ".npy": ".parquet", ".npz": ".parquet"}
GROUP = 8192  # rows of a Parquet row group

JsonRow = dict[str, Any]


def output_format(path: Path) -> str:
    """csv, tsv or parquet as the name ends; jsonl for every other name.

    Raises InputError for a name that promises a format that is not written.
    """
    suffix = path.suffix.lower()
    if suffix in PACKED:
        raise InputError(f"{path}: compressed files are not written. Write {path.stem}, then pack it.")
    if suffix in ALTERNATIVES:
        raise InputError(f"{path}: {suffix} files are not written. Use {path.stem}{ALTERNATIVES[suffix]}.")
    return FORMATS.get(suffix, "jsonl")


def json_line(row: JsonRow) -> str:
    """A row as a line of JSON; what JSON has no type for (dates, decimals) is text."""
    return json.dumps(row, ensure_ascii=False, default=_text) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@contextlib.contextmanager
def table_file(target: Path, *, last: Sequence[str] = ()) -> Iterator[Callable[[JsonRow], None]]:
    """What writes rows to a file, in the format of its name, whole or not at all; `last` are its last columns."""
    format = output_format(target)
    if format == "jsonl":
        with atomic_text_file(target) as file:
            yield lambda row: _put(file, row)
        return
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "rows.jsonl")
        with lines.open("w", encoding="utf-8", newline="") as file:
            yield lambda row: _put(file, row)
        write_table(lines, target, last=last)


def _put(file: Any, row: JsonRow) -> None:
    file.write(json_line(row))


def write_table(lines: Path, target: Path, *, last: Sequence[str] = ()) -> None:
    """JSON lines as a file of another format, whole or not at all."""
    format = output_format(target)
    names = _columns(_rows(lines), last)
    if format == "parquet":
        with atomic_path(target) as part:
            _write_parquet(lines, part, names)
        return
    with open_stream(target) if is_stream(target) else atomic_text_file(target) as file:
        file.write(_line(names, DELIMITERS[format]))
        for row in _rows(lines):
            file.write(_line([_cell(row.get(name)) for name in names], DELIMITERS[format]))


def _rows(lines: Path) -> Iterator[JsonRow]:
    with lines.open("rb") as file:
        yield from _loaded(file)


def _loaded(file: BinaryIO) -> Iterator[JsonRow]:
    for line in file:
        yield json.loads(line)


def _columns(rows: Iterable[JsonRow], last: Sequence[str]) -> list[str]:
    """Every column that some row has, in the order in which they come."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(row))
    return [*(name for name in columns if name not in last), *(name for name in last if name in columns)]


# CSV and TSV


def _cell(value: Any) -> str:
    """Lists and objects are JSON, and what is missing is empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(cells: Sequence[str], delimiter: str) -> str:
    return delimiter.join(_quoted(cell, delimiter) for cell in cells) + "\n"


def _quoted(cell: str, delimiter: str) -> str:
    """In quotes where it has to be: csv.writer leaves a lone carriage return bare, and it would end the row."""
    if any(sign in cell for sign in (delimiter, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


# Parquet


def _write_parquet(lines: Path, target: Path, names: Sequence[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    column_types = _column_types(lines, names)
    schema = pyarrow.schema([(name, column_type or pyarrow.string()) for name, column_type in column_types.items()])
    with pyarrow.parquet.ParquetWriter(target, schema) as file:
        for group in _groups(lines):
            arrays = [
                _array([row.get(name) for row in group], column_type) for name, column_type in column_types.items()
            ]
            file.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _groups(lines: Path) -> Iterator[list[JsonRow]]:
    rows = _rows(lines)
    while group := list(islice(rows, GROUP)):
        yield group


def _column_types(lines: Path, names: Sequence[str]) -> dict[str, pyarrow.DataType | None]:
    """The type of each column over all rows; None for mixed types, which are written as text."""
    import pyarrow

    column_types: dict[str, pyarrow.DataType | None] = dict.fromkeys(names, pyarrow.null())
    for group in _groups(lines):
        for name, column_type in column_types.items():
            if column_type is not None:
                column_types[name] = _unified_type(column_type, [row.get(name) for row in group])
    return {
        name: None if column_type is None or not _writable(column_type) else column_type
        for name, column_type in column_types.items()
    }


def _unified_type(column_type: pyarrow.DataType, values: list[Any]) -> pyarrow.DataType | None:
    import pyarrow

    try:
        own = pyarrow.array(values).type
        schemas = [pyarrow.schema([("values", one)]) for one in (column_type, own)]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field("values").type
    except (pyarrow.ArrowException, OverflowError, ValueError, TypeError):
        return None


def _writable(column_type: pyarrow.DataType) -> bool:
    """Parquet has no objects without keys, and readers trip over columns without any value."""
    import pyarrow

    if pyarrow.types.is_null(column_type):
        return False
    if pyarrow.types.is_struct(column_type):
        return column_type.num_fields > 0 and all(
            _writable(column_type.field(index).type) for index in range(column_type.num_fields)
        )
    return (
        not pyarrow.types.is_list(column_type)
        or pyarrow.types.is_null(column_type.value_type)
        or _writable(column_type.value_type)
    )


def _array(values: list[Any], column_type: pyarrow.DataType | None) -> pyarrow.Array:
    import pyarrow

    if column_type is None:
        return pyarrow.array([None if value is None else _cell(value) for value in values], pyarrow.string())
    return pyarrow.array(values, column_type)
