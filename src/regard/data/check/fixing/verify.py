"""Read a written copy again, and compare it with the intended rows."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.check.fixing.row_writers import written_columns
from regard.data.check.row_store import stable_hash
from regard.data.formats.format import FileStart
from regard.data.formats.registry import detect_format
from regard.data.formats.row_writers import CELL_SEPARATOR, USE_JSON_LINES
from regard.data.readers import Reader, rows_of
from regard.data.records import AnswerRecord, DocumentRecord, Record
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.sources.sources import Source, suffix_of
from regard.errors import DataError, pluralize


class RowHashes:
    """A hash of every row: of its record and of its written content."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.has_ids = "id" in columns
        self.hashes = array("Q")
        self.document = hashlib.blake2b(digest_size=8)

    def add(self, record: Record, content: str) -> None:
        if isinstance(record, DocumentRecord):
            self._add_document(record)
            return
        if isinstance(record, AnswerRecord) and not self.has_ids:
            record = replace(record, id="")  # generated from the line number
        values = record.values
        self.hashes.append(stable_hash(f"{values!r}{CELL_SEPARATOR}{content}"))

    def _add_document(self, record: DocumentRecord) -> None:
        """A document in several parts has one hash, because where it is split depends on its length."""
        self.document.update(record.text.encode("utf-8", "surrogatepass") + b"\n")
        if not record.continues:
            self.document.update(repr(record.group).encode("utf-8", "surrogatepass"))
            self.hashes.append(int.from_bytes(self.document.digest(), "little"))
            self.document = hashlib.blake2b(digest_size=8)


def find_difference(
    path: Path, target: Path, schema: Schema, options: ReadOptions, format: str, expected: RowHashes
) -> str | None:
    """The first difference of a copy from the expected rows, in words; None if there is none.

    The copy is read like any file with the name of its target; columns, task and labels are those of the data.
    """
    source = Source(path, suffix=suffix_of(target))
    source.name = str(target)
    columns = written_columns(format, schema)
    copy_options = ReadOptions(
        columns=columns,
        task=schema.task,
        labels=schema.style.kind,
        separator=schema.style.separator,
        one_hot=schema.style.one_hot,
        scheme=schema.scheme,
        format=options.format if options.format == format else None,
        quoting=options.quoting if schema.format == format else None,
        header=options.header if schema.format == format else None,
        encoding="utf-8",
    )
    hashes = RowHashes(columns)
    try:
        detected = copy_options.format or _detected_format(source)
        if detected != format:
            return f"it would be read as {detected}, not as {format}"
        reader = Reader([(source,)], copy_options)
        for number, _ in enumerate(_hash_rows(reader, format, hashes), 1):
            if number > len(expected.hashes) or hashes.hashes[number - 1] != expected.hashes[number - 1]:
                return f"row {number} would be read differently"
    except DataError as error:
        return f"it cannot be read: {error.message}"
    if len(hashes.hashes) != len(expected.hashes):
        return f"it has {pluralize(len(hashes.hashes), 'row')}, expected {len(expected.hashes):,}"
    return None


def _detected_format(source: Source) -> str:
    """The format of a file whose columns are not named."""
    detected, _ = detect_format(FileStart(source.head(), source.suffix))
    return detected.read_as or detected.name


def _hash_rows(reader: Reader, format: str, hashes: RowHashes) -> Iterator[None]:
    """Hash all rows of the copy; yields after each."""
    schema = reader.schema
    parse = schema.parser()
    for row in rows_of(reader.sources[0], schema, _raise):
        record = parse(row)
        count = len(hashes.hashes)
        hashes.add(record, _content(row.values, format))
        if len(hashes.hashes) > count:
            yield


def _content(values: Mapping[str, Any], format: str) -> str:
    if format in ("csv", "tsv"):
        return CELL_SEPARATOR.join(values.values())
    return json.dumps(values, ensure_ascii=False) if format == "jsonl" else ""


def _raise(error: DataError, raw: str) -> None:
    raise error


def copy_error(target: Path, reason: str, format: str) -> DataError:
    """The error for a copy that differs from the intended rows."""
    fix = USE_JSON_LINES if target.suffix in (".csv", ".tsv", ".parquet") else None
    if format in ("csv", "tsv", "conll") and target.suffix != f".{format}":
        fix = f"Use a file name that ends in .{format}."
    return DataError(f"would not have the same rows ({reason}), so it was not written", file=str(target), fix=fix)
