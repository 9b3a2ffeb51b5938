"""Values of a row, spans in them, and rows that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.data.readers import read
from regard.data.rows import Place, Row, describe_value, parse_json_cell
from regard.data.spans import Entity, is_span, parse_span
from regard.data.usable import usable_check
from regard.errors import DataError

ROW = Row(Place("a.csv", 7), {"text": "a b", "tags": '["x", "y"]', "number": 3, "mixed": ["x", 1]}, "")


def test_values_by_type():
    assert ROW.text("text") == "a b"
    assert ROW.strings("text") == ["a", "b"]
    assert ROW.strings("tags") == ["x", "y"]


def test_errors_name_line_and_column():
    with pytest.raises(DataError, match=r'a\.csv line 7: there is no "label"'):
        ROW.value("label")
    with pytest.raises(DataError, match="line 7, column number: is 3"):
        ROW.text("number")
    with pytest.raises(DataError, match=r"column mixed\[1\]: is 1 .*names of tags, not their numbers"):
        ROW.strings("mixed")


def test_json_cells_and_descriptions():
    assert parse_json_cell('{"a": 1}') == {"a": 1}
    assert parse_json_cell("[not json") == "[not json"
    assert describe_value(None) == "missing (null)"
    assert describe_value("x" * 50) == f'"{"x" * 40}"'


TEXT = "😀 Ada met Bo"
SPANS_ROW = Row(Place("a.jsonl", 3), {}, "")


@pytest.mark.parametrize(
    "span",
    [
        [2, 5, "PER"],
        {"start": 2, "end": 5, "label": "PER"},
        {"start_offset": 2, "end_offset": 5, "label": "PER"},
        {"start": 2, "end": 5, "labels": ["PER"]},
        {"start": 3, "end": 6, "label": "PER", "text": "Ada"},  # counted in UTF-16
    ],
)
def test_every_notation_is_read(span):
    assert is_span(span)
    assert parse_span(SPANS_ROW, span, "entities", TEXT) == Entity(2, 5, "PER")


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("PER", r'line 3, column entities: is "PER"'),
        ({"start": 2.0, "end": 5, "label": "PER"}, "expected a whole number"),
        ({"start": 2, "end": 5, "labels": ["PER", "LOC"]}, "expected one label for each span"),
        ({"start": 0, "end": 3, "label": "PER", "text": "Bo"}, 'says "Bo", but 0 to 3 is'),
    ],
)
def test_invalid_spans_are_refused(span, message):
    with pytest.raises(DataError, match=message):
        parse_span(SPANS_ROW, span, "entities", TEXT)


ROWS = "text,label\nfine day,good\nbad day,bad\nsad film,\n  ,good\nnice one,good\nbad one,bad\n"
PAIRS = "first,second,label\na b,c,yes\na,,no\nd,e,no\n"


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (ROWS, [(4, "this row has no label"), (5, "this row has an empty text")]),
        (PAIRS, [(3, "this row has an empty text")]),
        ("first,second\na,b\nc,\n", [(3, "this row has an empty text")]),
    ],
)
def test_which_rows_cannot_be_used(content: str, problems: list[tuple[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content)
    found: list[DataError] = []
    reader = read(path, on_bad=found.append)
    reader.check = usable_check(reader.schema)
    rows = len(list(reader))
    assert [(error.line, error.message) for error in found] == problems
    assert rows == content.count("\n") - 1 - len(problems)


def test_training_and_evaluation_skip_them(tmp_path: Path) -> None:
    path, bad = tmp_path / "rows.csv", tmp_path / "bad.jsonl"
    path.write_text(ROWS)
    with pytest.raises(DataError, match="line 4: this row has no label"), pytest.warns(UserWarning, match="empty text"):
        regard.train(path, preset="ngram", out=tmp_path / "run", dev_fraction=0)
    result = regard.train(path, preset="ngram", out=tmp_path / "run", dev_fraction=0, skip_bad=bad)
    assert result.rows == 4
    assert [json.loads(line)["line"] for line in bad.read_text().splitlines()] == [4, 5]
    evaluation = regard.evaluate(tmp_path / "run", path, skip_bad=bad)
    assert (evaluation.rows, evaluation.bad) == (4, 2)
    assert [json.loads(line)["raw"] for line in bad.read_text().splitlines()] == ["sad film,\n", "  ,good\n"]
