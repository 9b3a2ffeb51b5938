"""Whether a copy that was written is read back as what it should hold."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.check.fixing.row_writers import CELLS, LINES, written_columns
from regard.data.check.row_store import stable_hash
from regard.data.readers import Reader, rows_of
from regard.data.records import AnswerRecord, DocumentRecord, Record
from regard.data.schema import ReadOptions, Schema
from regard.data.sources import Source, suffix_of
from regard.errors import DataError, pluralize


class RowHashes:
    """A hash of every row: of its record, and of what is written of it besides."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.own_ids = "id" in columns
        self.found = array("Q")
        self.part = hashlib.blake2b(digest_size=8)

    def add(self, record: Record, content: str) -> None:
        if isinstance(record, DocumentRecord):
            self._add_document(record)
            return
        if isinstance(record, AnswerRecord) and not self.own_ids:
            record = replace(record, id="")  # the number of its line
        values = record.values
        self.found.append(stable_hash(f"{values!r}{CELLS}{content}"))

    def _add_document(self, record: DocumentRecord) -> None:
        """One that comes in parts counts once: where it is cut depends on its length."""
        self.part.update(record.text.encode("utf-8", "surrogatepass") + b"\n")
        if not record.continues:
            self.part.update(repr(record.group).encode("utf-8", "surrogatepass"))
            self.found.append(int.from_bytes(self.part.digest(), "little"))
            self.part = hashlib.blake2b(digest_size=8)


def difference(
    fresh: Path, target: Path, found: Schema, told: ReadOptions, format: str, wanted: RowHashes
) -> str | None:
    """What is not read back from a copy, with its place; None where all of it is.

    The copy is read as any other file with the name of its target; columns, task and labels are those of the data.
    """
    source = Source(fresh, suffix=suffix_of(target))
    source.name = str(target)
    columns = written_columns(format, found)
    again = ReadOptions(
        columns=columns,
        task=found.task,
        labels=found.style.kind,
        separator=found.style.separator,
        one_hot=found.style.one_hot,
        scheme=found.scheme,
        format=told.format if told.format == format else None,
        quoting=told.quoting if found.format == format else None,
        header=told.header if found.format == format else None,
        encoding="utf-8",
    )
    digests = RowHashes(columns)
    try:
        reader = Reader([(source,)], again)
        if reader.schema.format != format:
            return f"it would be read as {reader.schema.format}, not as {format}"
        for number, _ in enumerate(_digested(reader, format, digests), 1):
            if number > len(wanted.found) or digests.found[number - 1] != wanted.found[number - 1]:
                return f"row {number} of it would be read as another one"
    except DataError as error:
        return f"it cannot be read: {error.message}"
    if len(digests.found) != len(wanted.found):
        return f"it has {pluralize(len(digests.found), 'row')}, but {len(wanted.found):,} were written"
    return None


def _digested(reader: Reader, format: str, digests: RowHashes) -> Iterator[None]:
    """A step for every row that is read."""
    found = reader.schema
    make = found.parser()
    for row in rows_of(reader.sources[0], found, _stop):
        record = make(row)
        before = len(digests.found)
        digests.add(record, _content(row.values, format))
        if len(digests.found) > before:
            yield


def _content(values: Mapping[str, Any], format: str) -> str:
    if format in ("csv", "tsv"):
        return CELLS.join(values.values())
    return json.dumps(values, ensure_ascii=False) if format == "jsonl" else ""


def _stop(error: DataError, raw: str) -> None:
    raise error


def refuse(target: Path, why: str, format: str) -> DataError:
    """The error about a copy that is not kept."""
    fix = LINES if target.suffix in (".csv", ".tsv", ".parquet") else None
    if format in ("csv", "tsv", "conll") and target.suffix != f".{format}":
        fix = f"Give the copy a name that ends in .{format}."
    return DataError(f"would not hold the same rows ({why}), so it is not kept", file=str(target), fix=fix)
