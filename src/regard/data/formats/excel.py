"""Sheets of .xlsx workbooks, read row by row as CSV."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

from regard.data.formats.delimited.delimited import rows as table_rows
from regard.data.formats.delimited.delimited_schema import infer_table
from regard.data.formats.delimited.quoting import csv_row
from regard.data.formats.format import FileStart, Format
from regard.errors import DataError, MissingExtra, did_you_mean
from regard.foreign import file_errors
from regard.text.decompress import ALWAYS_ALLOWED, MAX_RATIO

EXCEL_SUFFIXES = (".xlsx", ".xlsm")
OLD_XLS = b"\xd0\xcf\x11\xe0"
MAX_STRING_BYTES = 1 << 28  # maximum bytes of the texts of a workbook, which are all in memory
MAX_ROWS = 1 << 20  # that Excel allows in a sheet
SEARCHED_ROWS = 1000  # rows of a sheet in which one with values must be


@contextlib.contextmanager
def sheet_as_csv(stream: BinaryIO, name: str, sheet: str | None) -> Iterator[BinaryIO]:
    """The sheet of that name, or the first one with rows, as CSV in UTF-8.

    Line n of it is row n of the sheet, as long as no cell has a line break. Columns without a name are named by their
    letter. Raises a MissingExtra without openpyxl, a DataError where the file is damaged or unpacks to absurdly much.
    """
    with contextlib.ExitStack() as stack:
        with file_errors(name, DataError):
            file = _seekable(stream, stack)
            _check_archive(file, name)
            table, other_sheets = _sheet(_workbook(file), name, sheet)
        if other_sheets:
            warnings.warn(
                f'{name} has {other_sheets + 1} sheets; the first with rows, "{table.title}", is read. '
                f'Write "{name}#NAME" to read another one.',
                UserWarning,
                stacklevel=2,
            )
        yield cast("BinaryIO", io.BufferedReader(_Lines(_rows(table, name), name), 1 << 16))


def _seekable(stream: BinaryIO, stack: contextlib.ExitStack) -> BinaryIO:
    if isinstance(getattr(stream, "raw", None), io.FileIO):
        return stream
    copy = cast("BinaryIO", stack.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115 (closed with the stack)
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def _check_archive(file: BinaryIO, name: str) -> None:
    """Check sizes before anything is decompressed; the zip module enforces them."""
    start = file.read(4)
    if start == OLD_XLS:
        fix = "Save it as .xlsx without a password, or as CSV."
        raise DataError("is an old .xls workbook, or one with a password", file=name, expected=".xlsx", fix=fix)
    if start != b"PK\x03\x04":
        raise DataError("is no .xlsx workbook", file=name, fix="If it is CSV, name it .csv.")
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        total = sum(part.file_size for part in parts)
        texts = sum(part.file_size for part in parts if "sharedStrings" in part.filename)
        if (total > ALWAYS_ALLOWED and total > MAX_RATIO * size) or texts > MAX_STRING_BYTES:
            fix = "If this is meant, save the sheet as CSV."
            raise DataError(f"unpacks to {total:,} bytes from {size:,}", file=name, fix=fix)
        for part in parts:
            with archive.open(part) as content:
                if b"<!DOCTYPE" in content.read(1024):
                    raise DataError(f"has a document type in {part.filename:.60}, as no workbook has", file=name)
    file.seek(0)


def _workbook(file: BinaryIO) -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtra("reading .xlsx", "excel") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and pictures that are not read
        return openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)


def _sheet(workbook: Any, name: str, sheet_name: str | None) -> tuple[Any, int]:
    """The sheet to read, and the number of other visible sheets."""
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    if sheet_name is not None:
        if sheet_name not in sheets:
            raise DataError(f'has no sheet "{sheet_name:.60}"', file=name, fix=did_you_mean(sheet_name, sheets).strip())
        return sheets[sheet_name], 0
    visible_sheets = [sheet for sheet in sheets.values() if sheet.sheet_state == "visible"] or list(sheets.values())
    chosen = next((sheet for sheet in visible_sheets if any(itertools.islice(_values(sheet), SEARCHED_ROWS))), None)
    if chosen is None:
        raise DataError("has no sheet with rows", file=name, expected="a header and at least one row")
    return chosen, len(visible_sheets) - 1


def _values(sheet: Any) -> Iterator[list[str]]:
    """The values of every row, without empty ones at its end; nothing at all for an empty row."""
    sheet.reset_dimensions()  # the size recorded in the file may be wrong
    for row in sheet.iter_rows(values_only=True):
        values = [_text(value) for value in row]
        while values and not values[-1]:
            values.pop()
        yield values


def _rows(sheet: Any, name: str) -> Iterator[list[str]]:
    """Rows as wide as the first one with values."""
    width = 0
    for number, values in enumerate(_values(sheet), 1):
        if number > MAX_ROWS:
            raise DataError(f"has more than {MAX_ROWS:,} rows", file=name, fix="Save the sheet as CSV.")
        if values and not width:
            width = len(values)
            values = _header(values)
        yield values + [""] * (width - len(values)) if values else []


def _header(values: Sequence[str]) -> list[str]:
    from openpyxl.utils import get_column_letter

    return [value or get_column_letter(number) for number, value in enumerate(values, 1)]


def _text(value: Any) -> str:
    """As a spreadsheet shows it and CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value)


class _Lines(io.RawIOBase):
    """Rows as bytes of CSV."""

    def __init__(self, rows: Iterator[list[str]], name: str) -> None:
        self.rows, self.name, self.ready = rows, name, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with file_errors(self.name, DataError):
            while not self.ready:
                lines = [csv_row(row, ",") if row else "\n" for row in itertools.islice(self.rows, 100)]
                if not lines:
                    return 0
                self.ready = "".join(lines).encode()
        size = min(len(buffer), len(self.ready))
        buffer[:size] = self.ready[:size]
        self.ready = self.ready[size:]
        return size


def _sniff(start: FileStart) -> str | None:
    return "it is a sheet of a spreadsheet" if start.suffix in EXCEL_SUFFIXES else None


# `regard.data.sources.sources.Source` turns the sheet into CSV, so everything after that is as for CSV.
EXCEL = Format("excel", suffixes=EXCEL_SUFFIXES, sniff=_sniff, rows=table_rows, infer=infer_table, read_as="csv")
