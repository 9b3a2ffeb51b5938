"""The delimiter, quoting and header of CSV files."""

from __future__ import annotations

import io
import sys
import types
from pathlib import Path

import pytest
from tests.data.helpers import GERMAN_ROWS, fields, german_table, text_and_label, write_file

from regard.data.readers import read
from regard.errors import DataError


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
@pytest.mark.parametrize("name", ["mails.csv", "mails.txt", "mails"])
def test_the_first_line_of_excel(tmp_path: Path, first: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(first + german_table(), encoding="utf-8-sig", newline="")
    reader = read(path)
    assert text_and_label(reader) == GERMAN_ROWS
    assert reader.schema.delimiter == ";"
    path.write_text(first + german_table() + "only one\n", encoding="utf-8", newline="")
    with pytest.raises(DataError, match="line 7: the row has 1 column"):
        list(read(path))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("order", "which"), [((0, 1), "second"), ((1, 0), "first")])
def test_two_columns_without_known_names(tmp_path: Path, header: bool, order: tuple[int, int], which: str) -> None:
    rows = [("a", "b")] * header + [(f"text number {number}", ("good", "bad")[number % 2]) for number in range(8)]
    lines = [",".join(row[side] for side in order) for row in rows]
    reader = read(write_file(tmp_path / "rows.csv", "\n".join(lines) + "\n"))
    assert (reader.schema.header, len(list(reader))) == (header, 8)
    assert ("the first row is a header" in reader.schema.reason) == header
    assert ("no header" in reader.schema.reason) != header
    assert f"the values of the {which} column repeat, so they are labels" in reader.schema.reason


def test_another_separator_of_excel(tmp_path: Path) -> None:
    path = tmp_path / "mails.csv"
    path.write_text("sep=|\n" + german_table("|"), encoding="utf-8", newline="")
    assert text_and_label(list(read(path))) == GERMAN_ROWS


@pytest.mark.parametrize("piped", [False, True])
def test_a_first_row_of_many_long_lines_is_recognized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piped: bool
) -> None:
    text = "one line, of many\n" * 40_000
    path = write_file(tmp_path / "a.csv", f'text,label\n"{text}",1.5\n"{text}",2\n')
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    result = fields(read("-" if piped else path), "text", "label")
    assert result == [(text, 1.5), (text, 2.0)]


@pytest.mark.parametrize(
    ("task", "columns"),
    [(None, "text=NAME,label=NAME,"), ("pair", "first=NAME,second=NAME,"), ("text", "text=NAME,")],
)
def test_unknown_columns_are_named_as_the_task_needs_them(tmp_path: Path, task: str | None, columns: str) -> None:
    path = write_file(tmp_path / "rows.csv", "a,b,c\nx,y,1\nz,w,2\n")
    with pytest.raises(DataError, match=f"no column with a known name.* --columns {columns} by name"):
        read(path, task=task)


@pytest.mark.parametrize(("delimiter", "named"), [(";", "semicolons"), (",", "commas")])
def test_a_tsv_file_without_tabs_is_read_with_another_format(tmp_path: Path, delimiter: str, named: str) -> None:
    rows = [("text", "label"), ("fine day", "good"), ("bad day", "bad")]
    path = write_file(tmp_path / "rows.tsv", "".join(f"{delimiter.join(row)}\n" for row in rows))
    with pytest.raises(DataError, match=f"first row has {named}, but no tab: read it as CSV, with --format csv"):
        read(path)
    assert text_and_label(read(path, format="csv")) == rows[1:]
    write_file(path, "some line; without names\nanother\n")
    with pytest.raises(DataError, match="Name the columns"):
        read(path)


def test_labels_that_were_asked_for_are_no_tags(tmp_path: Path) -> None:
    path = write_file(tmp_path / "rows.csv", "ticket,tags\nit crashes,app\nI was charged,billing\n")
    with pytest.raises(DataError, match=r"no column for tokens was recognized .* --columns tokens=NAME,tags=NAME"):
        read(path)
    with pytest.raises(
        DataError, match=r"no columns for text and label were recognized .* --columns text=NAME,label=NAME"
    ):
        read(path, labels="multi")
    assert len(list(read(path, labels="multi", columns={"text": "ticket", "label": "tags"}))) == 2
