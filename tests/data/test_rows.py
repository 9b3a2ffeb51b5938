"""Values of a row, and errors with its location."""

import pytest

from regard.data.rows import Place, Row, describe_value, parse_json_cell
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
