"""Ordinary files of ordinary programs: other encodings, Excel's CSV and its workbooks."""

from __future__ import annotations

import gzip
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.run import check
from regard.data.corpus.token_store import Corpus
from regard.data.readers import read
from regard.data.records import ClassifyRecord, Record
from regard.errors import DataError, InputError, MissingExtra
from regard.text.learn import train_tokenizer
from regard.text.text_files import read_chunks

ROWS = [
    ("Die Küche war größer und schöner als gedacht", "gut"),
    ("Das Frühstück für zwölf Gäste war kalt", "schlecht"),
    ("Ein schäbiges Zimmer – für 80 € zu teuer", "schlecht"),
    ("Sehr nette Leute, wir kommen gern zurück", "gut"),
]


def table(delimiter: str = ";", end: str = "\r\n") -> str:
    return end.join(delimiter.join(f'"{cell}"' for cell in row) for row in [("text", "label"), *ROWS]) + end


def pairs(records: list[Record]) -> list[tuple[Any, Any]]:
    return [(record.text, record.label) for record in records if isinstance(record, ClassifyRecord)]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_is_read_and_its_encoding_reported(tmp_path: Path, encoding: str, packed: bool) -> None:
    path = tmp_path / ("mails.csv.gz" if packed else "mails.csv")
    content = table().encode(encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.warns(UserWarning, match=r"mails.csv.* is read as .*, because .* --encoding NAME"):
        reader = read(path)
    assert pairs(list(reader)) == ROWS
    assert reader.schema.encoding.startswith(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pairs(list(read(path, encoding=encoding))) == ROWS


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes((table() + "one cell\r\n").encode("utf-16"))
    with (
        pytest.warns(UserWarning, match="utf-16-le"),
        pytest.raises(DataError, match=r"mails.csv line 6: the row has 1"),
    ):
        list(read(path))


def test_an_encoding_that_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_text(table())
    with pytest.raises(InputError, match='"klingon" is not an encoding'):
        read(path, encoding="klingon")
    with pytest.raises(DataError, match=r"mails.csv line 2: is not ascii"):
        list(read(path, encoding="ascii"))


def test_a_wrong_byte_in_utf8_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes(table().encode() + b"caf\xe9 \xe9t\xe9;gut\n")
    with pytest.raises(DataError, match=r"line 6: byte 4 \(0xE9\) is not UTF-8"):
        list(read(path))


def test_check_finds_nothing_wrong_with_an_encoding(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_bytes(table().encode("cp1252"))
    with pytest.warns(UserWarning, match="cp1252"):
        found = check(path)
    plain = tmp_path / "plain.csv"
    plain.write_text(table(), encoding="utf-8")
    kinds = [finding.kind for finding in found.findings]
    assert kinds == [finding.kind for finding in check(plain).findings]
    assert found.encoding == "cp1252"
    assert found.rows == 4
    with pytest.warns(UserWarning, match="cp1252"):
        write_fixed_copy(path, tmp_path / "fixed.csv")
    assert pairs(list(read(tmp_path / "fixed.csv"))) == ROWS
    (tmp_path / "fixed.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
@pytest.mark.parametrize("name", ["mails.csv", "mails.txt", "mails"])
def test_the_first_line_of_excel(tmp_path: Path, first: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(first + table(), encoding="utf-8-sig", newline="")
    reader = read(path)
    assert pairs(list(reader)) == ROWS
    assert reader.schema.delimiter == ";"
    path.write_text(first + table() + "only one\n", encoding="utf-8", newline="")
    with pytest.raises(DataError, match="line 7: the row has 1 column"):
        list(read(path))


def test_another_separator_of_excel(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_text("sep=|\n" + table("|"), encoding="utf-8", newline="")
    assert pairs(list(read(path))) == ROWS


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("text;score\neins;3,5\nzwei;4\ndrei;1.234,25\nvier;-0,5\n")
    assert [record.label for record in read(path) if isinstance(record, ClassifyRecord)] == [3.5, 4.0, 1234.25, -0.5]
    write_fixed_copy(path, tmp_path / "fixed.csv")
    again = [record.label for record in read(tmp_path / "fixed.csv") if isinstance(record, ClassifyRecord)]
    assert again == [3.5, 4.0, 1234.25, -0.5]
    path.write_text('text,score\none,"1,234"\ntwo,"5,678"\n')  # between commas it may be a thousand
    assert read(path).schema.labels == "single"


# Text files


def test_text_files_in_other_encodings(tmp_path: Path) -> None:
    text = "Die Küche war größer.\n\nDas Frühstück war für zwölf Gäste.\n\n" * 40
    plain = tmp_path / "plain.txt"
    plain.write_text(text, encoding="utf-8")
    words = train_tokenizer([plain], size=70)
    store = Corpus.build([plain], words, tmp_path / "store")
    for encoding in ("cp1252", "utf-16"):
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        with pytest.warns(UserWarning, match="is read as"):
            assert "".join(read_chunks([path])) == text
        with pytest.warns(UserWarning, match="is read as"):
            assert train_tokenizer([path], size=70).backend.to_str() == words.backend.to_str()
        other = Corpus.build([path], words, tmp_path / f"store-{encoding}", encoding=encoding)
        assert (other.tokens == store.tokens).all()
    with pytest.raises(InputError, match=r"line 1 is not UTF-8|byte 5"):
        "".join(read_chunks([tmp_path / "cp1252.txt"], encoding="utf-8"))


# Workbooks

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
    path = workbook(tmp_path / "mails.xlsx", {"Tabelle1": [["text", "label"], *map(list, ROWS)]})
    reader = read(path)
    assert pairs(list(reader)) == ROWS
    assert reader.schema.reason.startswith("it is a sheet of a spreadsheet")
    assert check(path).rows == 4
    write_fixed_copy(path, tmp_path / "fixed.csv")
    assert pairs(list(read(tmp_path / "fixed.csv"))) == ROWS


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
        found = list(read(path, labels="class"))
    assert pairs(found) == [("one, two", "1"), ("line\nbreak", "2"), ("x", "0.5")]
    assert pairs(list(read(f"{path}#second"))) == [("a", "TRUE"), ("b", "FALSE")]
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
    assert pairs(list(read(path))) == [("x", "y"), ("z", "w")]
    assert "unused columns: A, C" in read(path).schema.reason


def test_workbooks_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    for content, says in (
        (b"\xd0\xcf\x11\xe0" + b"\0" * 100, "old .xls workbook, or one with a password"),
        (b"text,label\nx,y\n", "is no .xlsx workbook. If it is CSV, name it .csv"),
        (b"PK\x03\x04" + b"\0" * 100, "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=says):
            read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b"\0" * (80 << 20))
    with pytest.raises(DataError, match="unpacks to 83,886,080 bytes"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(DataError, match="has a document type"):
        read(path)


def test_a_row_far_down(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", {"a": [["text", "label"], ["x", "y"]]})
    far = tmp_path / "far.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(far, "w") as new:
        for part in old.infolist():
            content = old.read(part).replace(b'r="2"', b'r="99999999999"').replace(b'r="A2"', b'r="A99999999999"')
            new.writestr(part.filename, content)
    with pytest.raises(DataError, match=r"more than 1,048,576 rows|cannot be read"):
        list(read(far))


def test_without_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "a.xlsx", {"a": [["text", "label"], ["x", "y"]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtra, match=r"regard\[excel\]"):
        read(path)
