"""Write a copy of the data in which problems are fixed that need no decision. All changes are counted.

Fixed are: encoding damage, spaces around labels and entities, the start of an answer that occurs once in its context,
and entities that do not start with B-. Empty, duplicate and unreadable rows are removed. Similar labels are kept: a
person has to decide if they are typos.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.data.atomic import atomic_path
from regard.data.check.finding import describe_place
from regard.data.check.fixing.row_fixes import fixed_row
from regard.data.check.fixing.row_writers import (
    fit_format,
    open_writer,
    written_columns,
    written_format,
    written_styles,
)
from regard.data.check.fixing.streams import CleanedStream
from regard.data.check.fixing.verify import RowHashes, copy_error, find_difference
from regard.data.check.row_store import stable_hash
from regard.data.check.rules.checked_row import checked_row
from regard.data.readers import Reader, read, read_rows, rows_of
from regard.data.records import Place, Record
from regard.data.rows import ExcludedRow, Row
from regard.data.schema.schema import Schema
from regard.data.sources.locate import DataLocation
from regard.data.sources.sources import Source
from regard.errors import DataError
from regard.foreign import file_errors

MAX_LISTED = 20  # removed rows that are listed; the others are counted


@dataclass(frozen=True)
class FixedCopy:
    """The changes in the copy with their counts, and the rows that were removed because they cannot be read."""

    file: str
    rows: int
    changes: Mapping[str, int]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def write_fixed_copy(data: DataLocation, out: str | Path, **options: Any) -> FixedCopy:
    """Write the fixed copy, completely or not at all. Two aligned files become one table, SQuAD becomes JSON lines.

    `options` are those of `read`. The copy is read again and compared with the intended content; raises DataError with
    the first difference.
    """
    reader = read(data, on_bad=lambda error: None, **options)
    target = Path(out)
    format = written_format(target.suffix.lower(), reader.schema)
    difference: str | None = None
    with atomic_path(target) as path:
        for style in written_styles(format):
            fixed = _FixedRows(reader, format)
            fixed.write(path, style)
            difference = fixed.difference(path, target)
            if difference is None:
                changes = dict(fixed.changes.most_common())
                return FixedCopy(str(target), fixed.rows, changes, tuple(fixed.removed_rows()))
        raise copy_error(target, difference or "", format)


def check_copy_format(data: DataLocation, out: str | Path, **options: Any) -> None:
    """Raise InputError if the rows cannot be written to a file of that name. Data that cannot be read is not reported.

    `options` are those of `read`.
    """
    try:
        schema = read(data, **options).schema
    except DataError:
        return
    written_format(Path(out).suffix.lower(), schema)


class _FixedRows:
    """The fixed rows of all files, and the counts of the changes."""

    def __init__(self, reader: Reader, format: str) -> None:
        self.reader = reader
        self.format = format
        self.rows = 0
        self.hashes = RowHashes(reader.schema.columns)
        self.changes: Counter[str] = Counter()
        self._removed: list[str] = []
        self._removed_count = 0
        self._keys: set[int] = set()

    def write(self, path: Path, style: str) -> None:
        with open_writer(path, self.format, self.reader.schema, style) as write:
            for values, record in self:
                self.hashes.add(record, write(values))

    def difference(self, path: Path, target: Path) -> str | None:
        """The first difference of the copy from these rows; None for a correct copy and for one without rows."""
        if self.rows == 0:
            return None
        return find_difference(path, target, self.reader.schema, self.reader.options, self.format, self.hashes)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], Record]]:
        for sources, schema in self.reader.parts():
            parse = schema.parser()
            for row in self._source_rows(sources, schema):
                values = self._fit_format(fixed_row(row.values, schema, self.changes))
                try:
                    record = parse(Row(row.place, values, ""))
                except DataError as error:
                    self._remove(error, "")
                    continue
                except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
                    self._remove(row.place.error(f"cannot be used: {type(error).__name__}"), "")
                    continue
                if self._is_needed(record, schema):
                    self.rows += 1
                    yield self._with_document(self._rename_columns(values, schema), row), record

    def _is_needed(self, record: Record, schema: Schema) -> bool:
        """False for empty rows and duplicates."""
        row = checked_row(record, "")
        if not all(text.strip() for _, text in row.texts):
            self.changes["empty rows removed"] += 1
            return False
        key = stable_hash(f"{row.input_text}\x1f{row.annotation}")
        if key in self._keys and schema.format not in ("text", "conll"):
            self.changes["duplicate rows removed"] += 1
            return False
        self._keys.add(key)
        return True

    def _rename_columns(self, values: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The values with the column names of the copy."""
        columns = written_columns(self.format, schema)
        if columns == schema.columns:
            return values
        renamed = {name: values.get(schema.columns[role]) for role, name in columns.items()}
        return {name: value for name, value in renamed.items() if value is not None}

    def _with_document(self, values: dict[str, Any], row: Row) -> dict[str, Any]:
        """The values with the document that the row is a part of, where the format of the data marks documents."""
        if row.document is None:
            return values
        several_files = len(self.reader.sources) > 1
        document = f"{row.place.file} {row.document}" if several_files else row.document
        return {**values, "document" if self.format == "conll" else "document_id": document}

    def _fit_format(self, values: dict[str, Any]) -> dict[str, Any]:
        fitted = fit_format(values, self.format, self.reader.schema)
        if fitted != values:
            self.changes["line breaks in texts replaced by spaces"] += 1
        return fitted

    def _source_rows(self, sources: tuple[Source, ...], schema: Schema) -> Iterator[Row]:
        with file_errors(sources[0].name, DataError):
            if len(sources) == 2:
                yield from rows_of(sources, schema, self._remove)
                return
            with sources[0].open() as stream:
                cleaned = stream if schema.format == "parquet" else CleanedStream(stream, schema.format, self.changes)
                yield from read_rows(cast("BinaryIO", cleaned), sources[0].name, schema, self._remove)

    def _remove(self, error: DataError, raw: str) -> None:
        if isinstance(error, ExcludedRow):
            self.changes[f"rows left out: {error.message}"] += 1
            return
        self._removed_count += 1
        if len(self._removed) < MAX_LISTED:
            place = Place(error.file or "", error.line, error.row)
            self._removed.append(f"{describe_place(place)}: {error.message}")

    def removed_rows(self) -> Iterator[str]:
        """The places of unreadable rows with the reason; those beyond MAX_LISTED are counted."""
        yield from self._removed
        if self._removed_count > len(self._removed):
            yield f"and {self._removed_count - len(self._removed):,} more"
