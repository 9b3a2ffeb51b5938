"""CSV and TSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from regard.data.formats.delimited.csv_cells import DECIMAL, read_cells, with_point
from regard.data.formats.delimited.delimited_schema import infer_table, sniff_csv, sniff_tsv
from regard.data.formats.format import Format
from regard.data.formats.row_writers import open_csv, open_tsv
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.schema import Schema
from regard.errors import DataError, pluralize, shorten


def rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """The rows of a table by the names in its header, or by column number from 0 if it has none.

    Numbers of the column `schema.decimal_comma` are written 3,5 in the file; they become 3.5.
    """
    names: list[str] | None = None

    def reject(error: DataError, raw: str) -> None:
        if schema.header and names is None:
            raise error  # the next row must not become the header
        on_bad(error, raw)

    decimal_comma = schema.decimal_comma
    cells = read_cells(stream, name, reject, delimiter=schema.delimiter, quoting=schema.quoting)
    if schema.header:
        line, names, _ = next(cells, (1, [], ""))
        _check_header(names, Place(name, line))
    for line, values, raw in cells:
        if names is None:
            names = [str(number) for number in range(len(values))]
        place = Place(name, line)
        if len(values) != len(names):
            on_bad(_wrong_count(values, names, place, quoting=schema.quoting, delimiter=schema.delimiter), raw)
            continue
        row = dict(zip(names, values, strict=True))
        if decimal_comma is not None and DECIMAL.fullmatch(row.get(decimal_comma, "")):
            row[decimal_comma] = with_point(row[decimal_comma])
        yield Row(place, row, raw)


def _check_header(names: Sequence[str], place: Place) -> None:
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        message = f'two columns are named "{shorten(repeated, 60)}"'
        raise place.error(message, expected="a different name for each column")


def _wrong_count(
    values: Sequence[str], names: Sequence[str], place: Place, *, quoting: bool, delimiter: str
) -> DataError:
    fix = "Enclose texts that contain the delimiter or a line break in double quotes."
    if not quoting:
        fix = (
            "Remove the delimiter from the text; or, if texts are enclosed in double quotes, read it with quoting=True."
        )
    elif delimiter == "\t":
        fix += " If double quotes are literal characters here, read it with quoting=False."
    shown = " | ".join(shorten(value, 30) for value in values[:6])
    expected = f"{len(names)} ({', '.join(shorten(name, 30) for name in names[:12])})"
    message = f"the row has {pluralize(len(values), 'column')} ({shown})"
    return place.error(message, expected=expected, fix=fix, kind="wrong-columns")


STYLES = ("default", "quoted")
CSV = Format(
    "csv", suffixes=(".csv",), sniff=sniff_csv, rows=rows, infer=infer_table, write=open_csv, write_styles=STYLES
)
TSV = Format(
    "tsv", suffixes=(".tsv", ".tab"), sniff=sniff_tsv, rows=rows, infer=infer_table, write=open_tsv, write_styles=STYLES
)
