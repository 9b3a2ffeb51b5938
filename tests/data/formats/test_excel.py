"""Excel workbooks are read row by row."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import GERMAN_ROWS, text_and_label

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.run import check
from regard.data.readers import read
from regard.errors import DataError, MissingExtra

openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "mails.xlsx", {"Tabelle1": [["text", "label"], *map(list, GERMAN_ROWS)]})
    reader = read(path)
    assert text_and_label(reader) == GERMAN_ROWS
    assert reader.schema.reason.startswith("it is a sheet of a spreadsheet")
    assert check(path).rows == 4
    write_fixed_copy(path, tmp_path / "fixed.csv")
    assert text_and_label(list(read(tmp_path / "fixed.csv"))) == GERMAN_ROWS


def test_sheets(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["text", "label"], ["one, two", 1], ["line\nbreak", 2.0], [None, None], ["x", 0.5]]
    sheets: dict[str, list[list[Any]]] = {
        "empty": [],
        "first": rows,
        "second": [["text", "label"], ["a", True], ["b", False]],
    }
    path = workbook(tmp_path / "mails.xlsx", sheets)
    with pytest.warns(
        UserWarning, match=r'has 3 sheets; the first with rows, "first", is read.* Write ".*mails.xlsx#NAME"'
    ):
        results = list(read(path, labels="class"))
    assert text_and_label(results) == [("one, two", "1"), ("line\nbreak", "2"), ("x", "0.5")]
    assert text_and_label(list(read(f"{path}#second"))) == [("a", "TRUE"), ("b", "FALSE")]
    with pytest.raises(DataError, match=r'has no sheet "secnd". Did you mean "second"'):
        read(f"{path}#secnd")
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "none.xlsx#first")
    with pytest.raises(DataError, match="has no sheet with rows"):
        read(workbook(tmp_path / "empty.xlsx", {"empty": []}))


def test_columns_without_a_name(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", {"a": [[None, "text", None, "label"], [1, "x", 2, "y"], [None, "z", None, "w"]]}
    )
    assert text_and_label(list(read(path))) == [("x", "y"), ("z", "w")]
    assert "unused columns: A, C" in read(path).schema.reason


def test_workbooks_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    for content, message in (
        (b"\xd0\xcf\x11\xe0" + b"\0" * 100, "old .xls workbook, or one with a password"),
        (b"text,label\nx,y\n", "is no .xlsx workbook. If it is CSV, name it .csv"),
        (b"PK\x03\x04" + b"\0" * 100, "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"\0" * (80 << 20))
    with pytest.raises(DataError, match="unpacks to 83,886,080 bytes"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(DataError, match="has a document type"):
        read(path)


def test_a_row_far_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.formats.excel.MAX_ROWS", 1000)
    path = workbook(tmp_path / "a.xlsx", {"a": [["text", "label"], ["x", "y"]]})
    far = tmp_path / "far.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(far, "w") as new:
        for part in old.infolist():
            content = old.read(part).replace(b'r="2"', b'r="99999999999"').replace(b'r="A2"', b'r="A99999999999"')
            new.writestr(part.filename, content)
    with pytest.raises(DataError, match=r"more than 1,000 rows|cannot be read"):
        list(read(far))


def test_without_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "a.xlsx", {"a": [["text", "label"], ["x", "y"]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"regard\[excel\]"):
        read(path)
