"""The cells of CSV and TSV files: with quotes as spreadsheets write them, or without as GLUE does."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import BinaryIO

from regard.data.formats.lines import read_lines, strip_line_end
from regard.data.rows import MAX_LINE_BYTES, OnBadRow, Place
from regard.errors import DataError

MAX_QUOTE = 1 << 24  # characters after the first line of a quoted value: a quote left open is given up there
SEPARATOR = re.compile(r'"?sep=([^\w"\s\\]|\t)"?\r?\n?', re.IGNORECASE)  # Excel's first line about the file itself
DECIMAL = re.compile(r"\s*[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+\s*")  # 3,5 and 1.234,5
Cells = tuple[int, list[str], str]  # first line, values, as written


class OpenQuote(DataError):
    """A double quote that is not closed up to the end of what was read."""


def with_point(number: str) -> str:
    """A number with a decimal comma, as computers write it."""
    return number.replace(".", "").replace(",", ".") if DECIMAL.fullmatch(number) else number


def read_cells(stream: BinaryIO, name: str, bad: OnBadRow, *, delimiter: str, quoting: bool) -> Iterator[Cells]:
    """The values of each line or, with quotes, of each run of lines that makes a row; blank lines are none."""
    if quoting:
        yield from _quoted(stream, name, bad, delimiter)
        return
    for number, line in _table_lines(stream, name, bad):
        if line.strip("\r\n"):
            yield number, strip_line_end(line).split(delimiter), line


def _table_lines(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[tuple[int, str]]:
    """All lines except a first line such as "sep=;", in which Excel names the delimiter."""
    for number, line in read_lines(stream, name, bad):
        if number > 1 or not SEPARATOR.fullmatch(line):
            yield number, line


class _Feed:
    """Lines for the csv module that can be read again: a row with an error consumes only its first line."""

    def __init__(self, source: Iterator[tuple[int, str]]) -> None:
        self.source, self.returned = source, list[tuple[int, str]]()
        self.used: list[tuple[int, str]] = []
        self.size = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        numbered_line = self.returned.pop() if self.returned else next(self.source)
        self.used.append(numbered_line)
        if len(self.used) > 1:
            self.size += len(numbered_line[1])
            if self.size > MAX_QUOTE:
                raise csv.Error("field limit")
        return numbered_line[1]

    def begin(self) -> None:
        """A new row."""
        self.used, self.size = [], 0

    def give_back(self) -> None:
        self.returned.extend(reversed(self.used[1:]))


def _quoted(stream: BinaryIO, name: str, bad: OnBadRow, delimiter: str) -> Iterator[Cells]:
    if csv.field_size_limit() < MAX_LINE_BYTES:  # the module's own limit of 128 kB is shorter than many texts
        csv.field_size_limit(MAX_LINE_BYTES)
    feed = _Feed(_table_lines(stream, name, bad))
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.begin()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number, line = feed.used[0]
            bad(_misquoted(str(error), Place(name, number), line, feed.used[-1][0]), line)
            feed.give_back()
            continue
        if values:
            number, line = feed.used[0]
            yield number, values, line if len(feed.used) == 1 else "".join(line for _, line in feed.used)


def _misquoted(error: str, place: Place, line: str, last: int) -> DataError:
    column = f"{line.find(chr(34)) + 1}"
    fix = 'Write a double quote inside a text twice (""), and one before and after it.'
    if "end of data" in error or "field limit" in error:
        what = f"a double quote opens here and is not closed up to line {last}"
        return OpenQuote(what, file=place.file, line=place.line, column=column, fix=fix, kind="unbalanced-quotes")
    if "new-line" in error:
        what = "a carriage return is inside a row, outside of quotes"
    else:
        what = f"a closing double quote on line {last} is followed by more than a separator"
    return place.error(what, column=column, fix=fix, kind="unbalanced-quotes")
