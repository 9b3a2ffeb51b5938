"""Detect CSV and TSV files, and infer their delimiter, quoting, header and columns."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.data.formats.delimited.csv_cells import DECIMAL, SEPARATOR, OpenQuote, read_cells, with_point
from regard.data.formats.format import FIRST_READ, FileStart, Sample
from regard.data.labels import to_number
from regard.data.records import column_aliases
from regard.data.schema.columns import columns_help, is_header
from regard.data.schema.infer_columns import SAMPLE_ROWS, infer_from_names, with_label_style
from regard.data.schema.schema import ReadOptions, Schema
from regard.errors import DataError

HEADER, NO_HEADER = "the first row is a header", "no header"
MAX_HEADER = 1 << 16  # characters; a longer first line is not a header
QUOTED = re.compile(r'"(?:[^"]|"")*"', re.DOTALL)
LABEL = re.compile(r"[\w.+:/|-]{1,40}")


# Detection


def sniff_tsv(start: FileStart) -> str | None:
    """By suffix, or if every line has the same number of tabs."""
    if named_delimiter(start.text) is not None or start.suffix == ".csv":
        return None
    if start.suffix in (".tsv", ".tab"):
        return f"the name ends in {start.suffix}"
    counts = {line.count("\t") for line in start.lines}
    return "every line has the same number of tabs" if len(counts) == 1 and counts != {0} else None


def sniff_csv(start: FileStart) -> str | None:
    """By suffix, by a first line "sep=;" as Excel writes it, or by a first line that names known columns."""
    if named_delimiter(start.text) is not None:
        return "the first line names the delimiter"
    if start.suffix == ".csv":
        return "the name ends in .csv"
    first = start.lines[0] if start.lines else ""
    cells = _first_cells(first) if len(first) < MAX_HEADER else []
    return "the first line names columns" if len(cells) > 1 and is_header(cells, {}) else None


def has_named_columns(start: FileStart, named: Sequence[str]) -> bool:
    """Whether the first line has a column of one of these names, or, for a number, at least as many columns."""
    cells = _first_cells(start.lines[0]) if start.lines and len(start.lines[0]) < MAX_HEADER else []
    return any(name in cells or (name.isdigit() and 0 < int(name) < len(cells)) for name in named)


def _first_cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=infer_delimiter("csv", line.replace("\t", ""))), [])
    except csv.Error:  # such as a carriage return inside the line
        return []


def named_delimiter(text: str) -> str | None:
    """The delimiter in a first line such as "sep=;", as Excel writes it."""
    match = SEPARATOR.fullmatch(text.partition("\n")[0])
    return None if match is None else match.group(1)


def infer_delimiter(name: str, text: str) -> str:
    """The delimiter of the columns, by the first line."""
    if name == "tsv":
        return "\t"
    named = named_delimiter(text)
    if named is not None:
        return named
    first = QUOTED.sub("", text.lstrip("\r\n").partition("\n")[0])
    return max(",;\t", key=first.count)


def uses_quotes(text: str, delimiter: str) -> bool:
    """Whether double quotes in a TSV enclose values, or are literal characters as in GLUE.

    They enclose values if every value that begins with one is closed correctly and some values need it: they contain a
    tab, a line break or a doubled quote, or every value of the first row is enclosed.
    """
    if '"' not in text:
        return False
    needed = False
    position = 0
    while position < len(text):
        end = _cell_end(text, position, delimiter)
        if text[position] == '"':
            match = QUOTED.match(text, position)
            if match is None:
                return needed and text.count('"', position) == 1  # the last row of the sample may be incomplete
            inner = match.group()[1:-1]
            end = match.end()
            if end < len(text) and text[end] not in (delimiter, "\n", "\r"):
                return False
            needed |= '""' in inner or delimiter in inner or "\n" in inner or "\r" in inner
        position = end + 1
    first_row = text.split("\n", 1)[0].rstrip("\r").split(delimiter)
    return needed or all(QUOTED.fullmatch(cell) for cell in first_row)


def _cell_end(text: str, position: int, delimiter: str) -> int:
    ends = [end for end in (text.find(delimiter, position), text.find("\n", position)) if end >= 0]
    return min(ends, default=len(text))


# Schema


def infer_table(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    """Delimiter, quoting and header from the first lines, then the columns."""
    name, text = sample.name, sample.start.text
    delimiter = infer_delimiter(schema.format, text)
    quoting = options.quoting
    if quoting is None:
        quoting = schema.format == "csv" or uses_quotes(text, delimiter)
    cells = _first_rows(text, name, delimiter=delimiter, quoting=quoting)
    if not cells:
        fix = columns_help(options.task)
        raise DataError("has no readable row", file=name, expected="a table with a header", fix=fix)
    header = options.header
    if header is None:
        label_columns = {f"label {column}": column for column in options.one_hot}
        header = is_header(cells[0], {**options.columns, **label_columns})
    reason = f"{schema.reason}; {HEADER if header else NO_HEADER}"
    if not quoting and schema.format != "csv":
        reason += "; quotes treated literally"
    schema = replace(schema, delimiter=delimiter, quoting=quoting, header=header, reason=reason)
    if not header and not options.columns:
        return _infer_two_columns(name, schema, options, cells)
    names = cells[0] if header else [str(number) for number in range(len(cells[0]))]
    rows = [dict(zip(names, values, strict=False)) for values in cells[1 if header else 0 :]]
    if not rows:
        raise DataError("has a header but no row", file=name, expected="at least one row")
    if delimiter != "," and options.labels != "multi":
        schema, rows = _with_decimal_points(schema, options, names, rows)
    return infer_from_names(name, schema, options, names, rows)


def _first_rows(text: str, name: str, *, delimiter: str, quoting: bool) -> list[list[str]]:
    """The cells of the first rows, up to one that may be incomplete at the end of the sample."""
    sample = text.encode()

    def on_bad(error: DataError, raw: str) -> None:
        if isinstance(error, OpenQuote) and len(sample) >= FIRST_READ // 2:
            raise error

    rows: list[list[str]] = []
    with contextlib.suppress(OpenQuote):
        for _, values, _ in read_cells(io.BytesIO(sample), name, on_bad, delimiter=delimiter, quoting=quoting):
            rows.append(values)
            if len(rows) == SAMPLE_ROWS:
                break
    return rows


def _with_decimal_points(
    schema: Schema, options: ReadOptions, names: Sequence[str], rows: list[dict[str, Any]]
) -> tuple[Schema, list[dict[str, Any]]]:
    """If every label is a number and some have a decimal comma (3,5), they are read as numbers (3.5)."""
    aliases = column_aliases()["label"]
    column = options.columns.get("label") or next((name for name in names if name.strip().lower() in aliases), "")
    values = [row[column] for row in rows if row.get(column)]
    with_comma = [value for value in values if DECIMAL.fullmatch(value)]
    if not with_comma or any(to_number(with_point(value)) is None for value in values):
        return schema, rows
    changed = [row | {column: with_point(row[column])} if row.get(column) else row for row in rows]
    return replace(schema, decimal_comma=column), changed


def _infer_two_columns(name: str, schema: Schema, options: ReadOptions, cells: Sequence[Sequence[str]]) -> Schema:
    """Two columns without known names: a text and its label, or in a TSV a text and its translation."""
    first_row = " | ".join(f"{cell:.30}" for cell in cells[0][:6])
    fix = _without_tabs(schema, cells[0]) or columns_help(options.task)
    error = DataError(f"has no column with a known name (the first row is: {first_row})", file=name, fix=fix)
    rows = [row for row in cells if len(row) == 2]
    if len(cells[0]) != 2 or options.task not in (None, "classify", "translate"):
        raise error
    label = next((side for side in (1, 0) if _are_labels([row[side] for row in rows[1:]])), None)
    if options.task != "translate" and label is not None:
        values = [row[label] for row in rows[1:]]
        header = rows[0][label] not in values
        names = rows[0] if header else ["0", "1"]
        columns = {"text": names[1 - label], "label": names[label]}
        reason = schema.reason.replace(NO_HEADER, HEADER) if header else schema.reason
        reason += f"; the values of the {'second' if label else 'first'} column repeat, so they are labels"
        schema = replace(schema, task="classify", columns=columns, header=header, reason=reason)
        return with_label_style(schema, options, values)
    if options.task == "classify" or schema.format != "tsv":
        raise error
    reason = f"{schema.reason}; two columns of text are read as a text and its translation"
    return replace(schema, task="translate", columns={"source": "0", "target": "1"}, reason=reason)


def _without_tabs(schema: Schema, first: Sequence[str]) -> str | None:
    """How a table with the suffix of TSV files is read if its first row has no tab, but names columns."""
    if schema.format != "tsv" or len(first) != 1:
        return None
    cells = _first_cells(first[0])
    if len(cells) == 1 or not is_header(cells, {}):
        return None
    sign = "semicolons" if infer_delimiter("csv", first[0]) == ";" else "commas"
    return f'Its first row has {sign}, but no tab: read it as CSV, with --format csv (format="csv" in Python).'


def _are_labels(values: Sequence[str]) -> bool:
    """Whether values are short and repeat."""
    return (
        len(values) > 1
        and all(LABEL.fullmatch(value) and not value.endswith(".") for value in values)
        and len(set(values)) <= max(2, len(values) // 2)
    )
