"""Plain text: documents with a blank line between them, a text a line, or two files whose lines belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import BinaryIO

from regard.data.formats.format import FileStart, Format, Sample, never
from regard.data.formats.lines import read_lines, read_lines_with_errors, strip_line_end
from regard.data.formats.row_writers import open_documents, open_lines
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema import ReadOptions, Schema
from regard.errors import DataError, pluralize

TREC_LINE = re.compile(r"([A-Z][A-Z_]{1,15}):(\w+)[ \t]+(\S.*)")

LONGEST_DOCUMENT = 1 << 24  # characters; a longer one is given in parts, cut between lines

USUAL = 5  # lines that are read before lengths are compared
UNLIKE, SLACK = 2.5, 5  # how many times as long as expected is odd, so many characters more on both sides


def document_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """A document a row; one too long to hold comes in parts, all but the last marked."""
    held: list[str] = []
    first, size = 1, 0
    for number, line in read_lines(stream, name, on_bad):
        if line.isspace():
            if held:
                yield _document(held, Place(name, first), continues=False)
            held, size = [], 0
            continue
        if size > LONGEST_DOCUMENT:
            yield _document(held, Place(name, first), continues=True)
            held, size = [], 0
        if not held:
            first = number
        held.append(line)
        size += len(line)
    if held:
        yield _document(held, Place(name, first), continues=False)


def _document(held: list[str], place: Place, *, continues: bool) -> Row:
    raw = "".join(held)
    text = strip_line_end(raw).replace("\r\n", "\n") if "\r" in raw else strip_line_end(raw)
    return Row(place, {"text": text, "continues": continues}, raw)


def line_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """A text a row, an empty line too."""
    for number, line in read_lines(stream, name, on_bad):
        yield Row(Place(name, number), {"text": strip_line_end(line)}, line)


def trec_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """Lines such as "DESC:manner How did it begin ?": a text, its label and the label with its subclass."""
    for number, line in read_lines(stream, name, on_bad):
        if not line.strip():
            continue
        place = Place(name, number)
        found = TREC_LINE.fullmatch(strip_line_end(line).strip())
        if found is None:
            on_bad(place.error(f"is not a label and a text: {line.strip()!r:.60}", expected='"LABEL:sub text"'), line)
            continue
        label, fine, text = found.groups()
        yield Row(place, {"text": text, "label": label, "fine": f"{label}:{fine}"}, line)


class _Lengths:
    """Whether lines are about as long as those beside them, and the first that are not."""

    def __init__(self) -> None:
        self.left, self.right, self.odd = 0, 0, 0

    def add(self, number: int, left: str, right: str) -> None:
        one, two = len(left.strip()), len(right.strip())
        if not self.odd and number > USUAL:
            expected = one * self.right / max(self.left, 1)
            far = max(expected, two) + SLACK > UNLIKE * (min(expected, two) + SLACK)
            self.odd = number if far or (one == 0) != (two == 0) else 0
        elif not self.odd and (one == 0) != (two == 0):
            self.odd = number
        self.left, self.right = self.left + one, self.right + two

    @property
    def fix(self) -> str:
        if not self.odd:
            return "No line is much longer than the one beside it: look at the last ones."
        return f"Line {self.odd} is the first whose lengths do not go together: look there."


def aligned_rows(
    first: BinaryIO, second: BinaryIO, names: tuple[str, str], columns: tuple[str, str], on_bad: OnBadRow
) -> Iterator[Row]:
    """Line n of one file with line n of the other."""
    both = zip_longest(read_lines_with_errors(first, names[0]), read_lines_with_errors(second, names[1]))
    seen = _Lengths()
    for number, (one, two) in enumerate(both, 1):
        if one is None or two is None:
            short, long = names if one is None else names[::-1]
            what = f"has {pluralize(number - 1, 'line')}, but {long} has {number + sum(1 for _ in both)}"
            raise DataError(what, file=short, expected="as many lines in both", fix=seen.fix)
        left, right = strip_line_end(one[1]), strip_line_end(two[1])
        seen.add(number, left, right)
        raw = f"{left}\t{right}\n"
        fault = one[2] or two[2]
        if fault is not None:
            on_bad(fault, raw)
        else:
            yield Row(Place(names[0], number), {columns[0]: left, columns[1]: right}, raw)


# Detection and schema


def _sniff_trec(start: FileStart) -> str | None:
    """Every line is a label, its subclass and a text, as in TREC's question classification."""
    lines = [line.strip() for line in start.lines]
    if start.suffix in (".csv", ".tsv", ".tab") or (len(lines) < 3 and start.suffix != ".label"):
        return None
    return "every line is LABEL:sub and a text" if all(TREC_LINE.fullmatch(line) for line in lines) else None


def _sniff_text(start: FileStart) -> str | None:
    return "it is neither a table, nor JSON, nor tagged words"


def _infer_text(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    task = options.task or "text"
    if task not in ("text", "classify"):
        raise DataError(f"is plain text ({schema.reason})", file=sample.name, expected=f"columns for {task}")
    return replace(schema, task=task, columns={"text": "text"})


def _needs_two_files(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    raise DataError("is one file", file=name, expected='two aligned files, such as "a.en,a.de"')


TREC = Format("trec", suffixes=(), sniff=_sniff_trec, rows=trec_rows)
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
