"""Infer how a file is read from its beginning: format, record type, and the column of each role."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping
from typing import Any

from regard.data.formats.binary_files import check_text
from regard.data.formats.delimited.delimited_schema import has_named_columns
from regard.data.formats.format import FIRST_READ, FileStart, Format, Sample
from regard.data.formats.registry import detect_format, formats
from regard.data.schema.infer_columns import SAMPLE_ROWS, infer_from_rows
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.sources.memory import MemorySource
from regard.data.sources.sources import Source
from regard.errors import DataError

SECOND_READ = 1 << 24
PLAIN_COLUMNS = {"text": "text"}  # what a reader of plain text calls its only column


def infer_schema(source: Source, options: ReadOptions) -> Schema:
    """The schema by the beginning of a file; a longer beginning is read if the first one is not enough."""
    if isinstance(source, MemorySource):
        schema = Schema("rows", "", {}, "it is in memory")
        return infer_from_rows(source.name, schema, options, source.sample(SAMPLE_ROWS))
    head = source.head()
    check_text(head, source.name)
    try:
        return _infer(source, head, options)
    except DataError:
        if len(head) < FIRST_READ:
            raise
    return _infer(source, source.head(SECOND_READ), options)


def _infer(source: Source, head: bytes, options: ReadOptions) -> Schema:
    start = FileStart(head, source.suffix)
    if options.format is not None:
        chosen = formats()[options.format]
        reason = "as given"
    else:
        chosen, reason = detect_format(start)
        if chosen.plain_text and options.columns:
            chosen = _with_columns(chosen, source, start, options.columns)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise DataError("contains only whitespace", file=source.name, expected="at least one row")
    schema = Schema(chosen.read_as or chosen.name, "", {}, reason, encoding=source.detected_encoding().name)
    sample = Sample(source.name, start, lambda schema: _first_rows(source, start, chosen, schema))
    return chosen.infer(sample, schema, options)


def _with_columns(plain: Format, source: Source, start: FileStart, columns: Mapping[str, str]) -> Format:
    """The format of a file that looks like plain text: a table if its first line has the columns that were given."""
    if has_named_columns(start, list(columns.values())):
        return formats()["csv"]
    if dict(columns) == PLAIN_COLUMNS:
        return plain
    names = ", ".join(f"{role}={name}" for role, name in columns.items())
    raise DataError(
        f"is plain text and has no columns, but columns were given ({names})",
        file=source.name,
        fix='Leave them out, or, if it is a table, name its format, such as --format csv (format="csv" in Python).',
    )


def _first_rows(source: Source, start: FileStart, chosen: Format, schema: Schema) -> list[dict[str, Any]]:
    """The first rows. Errors in them are reported when they are read for use."""
    if chosen.whole_file:
        source.copy_to_disk()
        with source.open() as stream:
            rows = chosen.rows(stream, source.name, schema, _ignore)
            return [row.values for row in itertools.islice(rows, SAMPLE_ROWS)]
    head = start.text.encode() if chosen.line_based else start.head
    rows = chosen.rows(io.BytesIO(head), source.name, schema, _ignore)
    usable = []
    try:
        for row in itertools.islice(rows, SAMPLE_ROWS):
            usable.append(row.values)  # noqa: PERF401 (the rows before an error are used)
    except DataError:
        if not usable and len(start.head) < FIRST_READ:  # an error in the file, not the end of the sample
            raise
    return usable


def _ignore(error: DataError, raw: str) -> None:
    """Bad rows are reported when the file is read."""
