"""CoNLL: a word a line with its columns, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from regard.data.formats.lines import OnBadRow, Row, read_lines, strip_line_end
from regard.data.records import Place
from regard.errors import DataError, pluralize

BLANKS = re.compile(r"[ \t]+")
COMMENT = re.compile(r"#\s*(sent_id|text|newdoc|newpar|id|global\.columns)\b")
DOCUMENT = "-DOCSTART-"


def fields(line: str, *, tabs: bool) -> list[str]:
    return line.split("\t") if tabs else BLANKS.split(line.strip(" \t"))


def rows(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[Row]:
    """A sentence a row: each column, named by its number from 0, is a list; "line" holds the line of each word.

    A line that opens a document (-DOCSTART-) ends a sentence too; comments are no words. A sentence with a bad line is
    bad as a whole.
    """
    width, tabs = 0, False
    words: list[list[str]] = []
    numbers: list[int] = []
    raw: list[str] = []
    fault: DataError | None = None
    for number, line in _ended(read_lines(stream, name, bad)):
        text = strip_line_end(line)
        if text.strip() and fields(text, tabs="\t" in text)[0] != DOCUMENT:
            tabs = "\t" in text if not width else tabs
            found = fields(text, tabs=tabs)
            if not words and _comment(text, tabs=tabs):
                continue
            width = width or len(found)
            if len(found) != width and fault is None:
                what = f"the line has {pluralize(len(found), 'column')} ({text:.60})"
                fault = DataError(what, file=name, line=number, expected=f"{width}, as on the first line")
            words.append(found)
            numbers.append(number)
            raw.append(line)
            continue
        if fault is not None:
            bad(fault, "".join(raw))
        elif words:
            columns = {str(place): list(column) for place, column in enumerate(zip(*words, strict=True))}
            yield Row(Place(name, numbers[0]), {**columns, "line": numbers}, "".join(raw))
        words, numbers, raw, fault = [], [], [], None


def _ended(found: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, and a blank one that ends the last sentence."""
    yield from found
    yield 0, ""


def _comment(text: str, *, tabs: bool) -> bool:
    if not text.startswith("#"):
        return False
    return COMMENT.match(text) is not None or (tabs and "\t" not in text)
