"""CSV and TSV: delimiters, quotes, headers and decimal commas."""

from __future__ import annotations

import csv
import io
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import (
    GERMAN_ROWS,
    LABEL,
    LINE,
    TEXT,
    fields,
    german_table,
    same_folder,
    table,
    text_and_label,
    write_file,
)

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.formats.delimited.quoting import csv_row, needs, quoted
from regard.data.readers import read
from regard.data.records import ClassifyRecord
from regard.errors import DataError

ROWS = st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=6)


@same_folder
@given(ROWS, st.sampled_from([",", ";", "\t"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_quoted_tables_come_back(tmp_path: Path, rows: list[tuple[str, str]], delimiter: str, quoting: int) -> None:
    path = tmp_path / ("data.tsv" if delimiter == "\t" else "data.csv")
    write_file(path, table(rows, ("text", "label"), delimiter=delimiter, quoting=quoting))
    assert text_and_label(read(path)) == rows


@same_folder
@given(st.lists(st.tuples(LINE, LABEL), min_size=1, max_size=6))
def test_tables_without_quoting_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = write_file(
        tmp_path / "data.tsv", "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
    )
    assert text_and_label(read(path, quoting=False)) == rows


def test_quotes_only_where_needed():
    assert csv_row(["a", "b, c", 'say "no"'], ",") == 'a,"b, c","say ""no"""\n'
    assert csv_row(["a", "b"], ",", all_quoted=True) == '"a","b"\n'
    assert csv_row([""], ",") == '""\n'  # a blank line would not be read as a row
    assert quoted('"') == '""""'
    assert needs("\ufeffa", ",")
    assert not needs("a;b", ",")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_rows_are_read_back(delimiter):
    values = ["one\ntwo", 'a "quote"', "a,b;c\td", ""]
    line = csv_row(values, delimiter)
    assert next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)) == values


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("text;score\neins;3,5\nzwei;4\ndrei;1.234,25\nvier;-0,5\n")
    assert [record.label for record in read(path) if isinstance(record, ClassifyRecord)] == [3.5, 4.0, 1234.25, -0.5]
    write_fixed_copy(path, tmp_path / "fixed.csv")
    again = [record.label for record in read(tmp_path / "fixed.csv") if isinstance(record, ClassifyRecord)]
    assert again == [3.5, 4.0, 1234.25, -0.5]
    path.write_text('text,score\none,"1,234"\ntwo,"5,678"\n')  # between commas it may be a thousand
    assert read(path).schema.labels == "single"


def test_a_quote_left_open_is_given_up_and_takes_one_line(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", 'text,label\n"open,a\n' + "word,b\n" * 20_000 + '"last",c\n')
    recorded: list[DataError] = []
    assert sum(1 for _ in read(path, on_bad=recorded.append)) == 20_001
    assert [error.line for error in recorded] == [2]


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
    text = "one line, of many\n" * 16_000
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
