"""What a file format defines: how it is detected, read and written.

A format is one `Format` object in a separate file, with one entry in `regard.data.formats.registry`:

    def rows(stream, name, schema, on_bad):
        for number, line in read_lines(stream, name, on_bad):
            text, label = line.rstrip().split(" => ")
            yield Row(Place(name, number), {"text": text, "label": label}, line)

    ARROWS = Format("arrows", suffixes=(".arrows",), sniff=by_suffix(".arrows"), rows=rows)
    register_format(ARROWS)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from regard.data.formats.lines import BOM
from regard.data.formats.row_writers import WriteRow
from regard.data.rows import OnBadRow, Row
from regard.data.schema.infer_columns import infer_from_rows
from regard.data.schema.schema import ReadOptions, Schema

FIRST_READ = 1 << 18  # bytes at the beginning of a file by which its format and columns are inferred


@dataclass(frozen=True)
class FileStart:
    """The beginning of a file: its first bytes, and the suffix of its name (".csv") without compression."""

    head: bytes
    suffix: str

    @cached_property
    def text(self) -> str:
        """The first bytes as text, without a last line that may be incomplete."""
        head = self.head
        if len(head) >= FIRST_READ and b"\n" in head:
            head = head[: head.rindex(b"\n") + 1]
        return head.removeprefix(BOM).decode("utf-8", "replace")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text that are not blank."""
        return [line for line in self.text.split("\n") if line.strip()]


@dataclass(frozen=True)
class Sample:
    """What a schema is inferred from: the beginning of a file, and a function that reads its first rows."""

    name: str
    start: FileStart
    first_rows: Callable[[Schema], list[dict[str, Any]]]


def infer_by_columns(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    """Complete a schema by the column names and values of the first rows."""
    return infer_from_rows(sample.name, schema, options, sample.first_rows(schema))


Sniff = Callable[[FileStart], str | None]
ReadRows = Callable[[BinaryIO, str, Schema, OnBadRow], Iterator[Row]]
OpenWriter = Callable[[Path, Schema, str], AbstractContextManager[WriteRow]]
Infer = Callable[[Sample, Schema, ReadOptions], Schema]


@dataclass(frozen=True)
class Format:
    """A file format.

    name: as in `--format` and in a schema.
    suffixes: ends of file names, in lower case.
    sniff: returns why a file is of this format, or None if it is not.
    rows: yields the rows of a file (stream, file name, schema, on_bad); unusable rows go to `on_bad`.
    write: opens a file (path, schema of the data, style) and gives a function that writes one row, see
        `regard.data.formats.row_writers`; None if the format is not written.
    write_styles: ways to write the format, tried in order until the file is read back as what was written.
    infer: completes the schema from the beginning of a file; by column names unless given.
    read_as: the name of the format that a schema gets, if it is another one.
    line_based: whether a row is always made of whole lines, so that an incomplete last line of a sample is ignored.
    whole_file: whether even the first rows can only be read from the whole file.
    plain_text: whether files have no columns.
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Sniff
    rows: ReadRows
    write: OpenWriter | None = None
    write_styles: tuple[str, ...] = ("default",)
    infer: Infer = infer_by_columns
    read_as: str | None = None
    line_based: bool = True
    whole_file: bool = False
    plain_text: bool = False


def by_suffix(*suffixes: str) -> Sniff:
    """Detect a format by the end of the file name alone."""

    def sniff(start: FileStart) -> str | None:
        return f"the name ends in {start.suffix}" if start.suffix in suffixes else None

    return sniff


def never(start: FileStart) -> str | None:
    """For formats that must be named by the user."""
    return None
