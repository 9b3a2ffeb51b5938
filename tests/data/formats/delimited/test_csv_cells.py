"""Cells of CSV: open quotes and decimal commas."""

from __future__ import annotations

from pathlib import Path

from tests.data.helpers import write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.readers import read
from regard.data.records import ClassifyRecord
from regard.errors import DataError


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
