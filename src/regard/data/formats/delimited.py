"""CSV and TSV: with quotes as spreadsheets write them, or without as GLUE does."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from regard.data.formats.lines import OnBadRow, Row, read_lines, strip_line_end
from regard.data.records import Place
from regard.data.sources import LONGEST
from regard.errors import DataError, pluralize, shorten

LONGEST_QUOTE = 1 << 24  # characters after the first line of a quoted value: a quote left open is given up there
SEPARATOR = re.compile(r'"?sep=([^\w"\s\\]|\t)"?\r?\n?', re.IGNORECASE)  # Excel's first line about the file itself
DECIMAL = re.compile(r"\s*[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+\s*")  # 3,5 and 1.234,5
Cells = tuple[int, list[str], str]  # first line, values, as written


class OpenQuote(DataError):
    """A double quote that is not closed up to the end of what was read."""


def rows(
    stream: BinaryIO,
    name: str,
    bad: OnBadRow,
    *,
    delimiter: str,
    quoting: bool,
    header: bool,
    decimal_comma: str | None = None,
) -> Iterator[Row]:
    """The rows of a table by the names in its header, or by number from 0 where it has none.

    Numbers of the column `decimal_comma` are written 3,5 in the file; here they are 3.5.
    """
    names: list[str] | None = None

    def refuse(error: DataError, raw: str) -> None:
        if header and names is None:
            raise error  # the next row must not become the header
        bad(error, raw)

    found = cells(stream, name, refuse, delimiter=delimiter, quoting=quoting)
    if header:
        line, names, _ = next(found, (1, [], ""))
        _check_header(names, Place(name, line))
    for line, values, raw in found:
        if names is None:
            names = [str(number) for number in range(len(values))]
        place = Place(name, line)
        if len(values) != len(names):
            bad(_wrong_count(values, names, place, quoting=quoting, delimiter=delimiter), raw)
            continue
        row = dict(zip(names, values, strict=True))
        if decimal_comma is not None and DECIMAL.fullmatch(row.get(decimal_comma, "")):
            row[decimal_comma] = with_point(row[decimal_comma])
        yield Row(place, row, raw)


def with_point(number: str) -> str:
    """A number with a decimal comma, as computers write it."""
    return number.replace(".", "").replace(",", ".") if DECIMAL.fullmatch(number) else number


def cells(stream: BinaryIO, name: str, bad: OnBadRow, *, delimiter: str, quoting: bool) -> Iterator[Cells]:
    """The values of each line or, with quotes, of each run of lines that makes a row; blank lines are none."""
    if quoting:
        yield from _quoted(stream, name, bad, delimiter)
        return
    for number, line in _table_lines(stream, name, bad):
        if line.strip("\r\n"):
            yield number, strip_line_end(line).split(delimiter), line


def _table_lines(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[tuple[int, str]]:
    """All lines but Excel's first one, sep=; which says what separates the columns."""
    for number, line in read_lines(stream, name, bad):
        if number > 1 or not SEPARATOR.fullmatch(line):
            yield number, line


def _check_header(names: Sequence[str], place: Place) -> None:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        what = f'two columns are named "{shorten(twice, 60)}"'
        raise place.error(what, expected="a name of its own for each column")


def _wrong_count(
    values: Sequence[str], names: Sequence[str], place: Place, *, quoting: bool, delimiter: str
) -> DataError:
    fix = "Put a text that holds the separator or a line end between double quotes."
    if not quoting:
        fix = "Take the separator out of the text; or, if texts stand between double quotes, read it with quoting on."
    elif delimiter == "\t":
        fix += " If a double quote is a mere character here, read it with quoting off."
    shown = " | ".join(shorten(value, 30) for value in values[:6])
    wanted = f"{len(names)} ({', '.join(shorten(name, 30) for name in names[:12])})"
    return place.error(f"the row has {pluralize(len(values), 'column')} ({shown})", expected=wanted, fix=fix)


class _Feed:
    """Lines for the csv module, which can be given back: a row that fails takes only its first line with it."""

    def __init__(self, source: Iterator[tuple[int, str]]) -> None:
        self.source, self.again = source, list[tuple[int, str]]()
        self.taken: list[tuple[int, str]] = []
        self.size = 0

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        found = self.again.pop() if self.again else next(self.source)
        self.taken.append(found)
        if len(self.taken) > 1:
            self.size += len(found[1])
            if self.size > LONGEST_QUOTE:
                raise csv.Error("field limit")
        return found[1]

    def begin(self) -> None:
        """A new row."""
        self.taken, self.size = [], 0

    def give_back(self) -> None:
        self.again.extend(reversed(self.taken[1:]))


def _quoted(stream: BinaryIO, name: str, bad: OnBadRow, delimiter: str) -> Iterator[Cells]:
    if csv.field_size_limit() < LONGEST:  # the module's own limit of 128 kB is shorter than many texts
        csv.field_size_limit(LONGEST)
    feed = _Feed(_table_lines(stream, name, bad))
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.begin()
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number, line = feed.taken[0]
            bad(_misquoted(str(error), Place(name, number), line, feed.taken[-1][0]), line)
            feed.give_back()
            continue
        if values:
            number, line = feed.taken[0]
            yield number, values, line if len(feed.taken) == 1 else "".join(line for _, line in feed.taken)


def _misquoted(error: str, place: Place, line: str, last: int) -> DataError:
    column = f"{line.find(chr(34)) + 1}"
    fix = 'Write a double quote inside a text twice (""), and one before and after it.'
    if "end of data" in error or "field limit" in error:
        what = f"a double quote opens here and is not closed up to line {last}"
        return OpenQuote(what, file=place.file, line=place.line, column=column, fix=fix)
    if "new-line" in error:
        what = "a carriage return stands inside a row, outside of quotes"
    else:
        what = f"a closing double quote on line {last} is followed by more than a separator"
    return place.error(what, column=column, fix=fix)
