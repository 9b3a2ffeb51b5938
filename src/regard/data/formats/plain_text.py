"""Plain text: documents separated by blank lines, one text per line, or two files with aligned lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import BinaryIO

from regard.data.formats.format import FileStart, Format, Sample, never
from regard.data.formats.lines import read_lines, read_lines_with_errors, strip_line_end
from regard.data.formats.row_writers import open_documents, open_lines
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.schema import ReadOptions, Schema
from regard.errors import DataError, pluralize

LONGEST_DOCUMENT = 1 << 24  # characters; a longer document is split into parts, between lines

MIN_LINES = 5  # lines that are read before lengths are compared
MAX_RATIO = 2.5  # of a length to the expected one
SLACK = 5  # characters added to both lengths before they are compared


def document_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """One row per document; a very long one is split into parts, and all but the last are marked with `continues`."""
    document: list[str] = []
    first, size = 1, 0
    for number, line in read_lines(stream, name, on_bad):
        if line.isspace():
            if document:
                yield _document(document, Place(name, first), continues=False)
            document, size = [], 0
            continue
        if size > LONGEST_DOCUMENT:
            yield _document(document, Place(name, first), continues=True)
            document, size = [], 0
        if not document:
            first = number
        document.append(line)
        size += len(line)
    if document:
        yield _document(document, Place(name, first), continues=False)


def _document(document: list[str], place: Place, *, continues: bool) -> Row:
    raw = "".join(document)
    text = strip_line_end(raw).replace("\r\n", "\n") if "\r" in raw else strip_line_end(raw)
    return Row(place, {"text": text, "continues": continues}, raw)


def line_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """One row per line, including empty ones."""
    for number, line in read_lines(stream, name, on_bad):
        yield Row(Place(name, number), {"text": strip_line_end(line)}, line)


class _LengthCheck:
    """Finds the first line whose length does not match that of its translation."""

    def __init__(self) -> None:
        self.left, self.right, self.first_mismatch = 0, 0, 0

    def add(self, number: int, left: str, right: str) -> None:
        first_length, second_length = len(left.strip()), len(right.strip())
        if not self.first_mismatch and number > MIN_LINES:
            expected = first_length * self.right / max(self.left, 1)
            mismatch = max(expected, second_length) + SLACK > MAX_RATIO * (min(expected, second_length) + SLACK)
            self.first_mismatch = number if mismatch or (first_length == 0) != (second_length == 0) else 0
        elif not self.first_mismatch and (first_length == 0) != (second_length == 0):
            self.first_mismatch = number
        self.left, self.right = self.left + first_length, self.right + second_length

    @property
    def fix(self) -> str:
        if not self.first_mismatch:
            return "No line has a very different length than its translation: look at the last lines."
        return f"Line {self.first_mismatch} is the first with very different lengths: look there."


def aligned_rows(
    first: BinaryIO, second: BinaryIO, names: tuple[str, str], columns: tuple[str, str], on_bad: OnBadRow
) -> Iterator[Row]:
    """Line n of one file with line n of the other."""
    both = zip_longest(read_lines_with_errors(first, names[0]), read_lines_with_errors(second, names[1]))
    length_check = _LengthCheck()
    for number, (first_length, second_length) in enumerate(both, 1):
        if first_length is None or second_length is None:
            short, long = names if first_length is None else names[::-1]
            what = f"has {pluralize(number - 1, 'line')}, but {long} has {number + sum(1 for _ in both)}"
            raise DataError(what, file=short, expected="as many lines in both", fix=length_check.fix)
        left, right = strip_line_end(first_length[1]), strip_line_end(second_length[1])
        length_check.add(number, left, right)
        raw = f"{left}\t{right}\n"
        fault = first_length[2] or second_length[2]
        if fault is not None:
            on_bad(fault, raw)
        else:
            yield Row(Place(names[0], number), {columns[0]: left, columns[1]: right}, raw)


# Detection and schema


def _sniff_text(start: FileStart) -> str | None:
    return "it is neither a table, nor JSON, nor tagged words"


def _infer_text(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    task = options.task or "text"
    if task not in ("text", "classify"):
        raise DataError(f"is plain text ({schema.reason})", file=sample.name, expected=f"columns for {task}")
    return replace(schema, task=task, columns={"text": "text"})


def _needs_two_files(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    raise DataError("is one file", file=name, expected='two aligned files, such as "a.en,a.de"')


TEXT = Format(
    "text",
    suffixes=(".txt", ".text"),
    sniff=_sniff_text,
    rows=document_rows,
    infer=_infer_text,
    write=open_documents,
    plain_text=True,
)
LINES = Format(
    "lines",
    suffixes=(),
    sniff=never,
    rows=line_rows,
    infer=_infer_text,
    write=open_lines,
    plain_text=True,
)
ALIGNED = Format("aligned", suffixes=(), sniff=never, rows=_needs_two_files, plain_text=True)
