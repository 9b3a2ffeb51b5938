"""Plain text: documents with a blank line between them, a text a line, or two files whose lines belong together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import BinaryIO

from regard.data.records import Place
from regard.data.rows import Bad, Row, bare, every_line, lines
from regard.errors import DataError

LONGEST_DOCUMENT = 1 << 24  # characters; a longer one is given in parts, cut between lines


def document_rows(stream: BinaryIO, name: str, bad: Bad) -> Iterator[Row]:
    """A document a row; one too long to hold comes in parts, all but the last marked."""
    held: list[str] = []
    first, size = 1, 0
    for number, line in lines(stream, name, bad):
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
    text = bare(raw).replace("\r\n", "\n") if "\r" in raw else bare(raw)
    return Row(place, {"text": text, "continues": continues}, raw)


def line_rows(stream: BinaryIO, name: str, bad: Bad) -> Iterator[Row]:
    """A text a row, an empty line too."""
    for number, line in lines(stream, name, bad):
        yield Row(Place(name, number), {"text": bare(line)}, line)


def aligned_rows(
    first: BinaryIO, second: BinaryIO, names: tuple[str, str], columns: tuple[str, str], bad: Bad
) -> Iterator[Row]:
    """Line n of one file with line n of the other."""
    both = zip_longest(every_line(first, names[0]), every_line(second, names[1]))
    for number, (one, two) in enumerate(both, 1):
        if one is None or two is None:
            short, long = names if one is None else names[::-1]
            what = f"has {number - 1} lines, but {long} has more"
            raise DataError(what, file=short, expected="as many lines in both", mend="Look where they part ways.")
        left, right = bare(one[1]), bare(two[1])
        raw = f"{left}\t{right}\n"
        fault = one[2] or two[2]
        if fault is not None:
            bad(fault, raw)
        else:
            yield Row(Place(names[0], number), {columns[0]: left, columns[1]: right}, raw)
