"""Lines are numbered, decoded and checked."""

import io

import pytest

from regard.data.formats.lines import check_strings, read_lines, read_lines_with_errors, strip_line_end
from regard.data.rows import Place
from regard.errors import DataError


def test_bad_lines_are_reported_with_their_number():
    errors = []
    stream = io.BytesIO(b"\xef\xbb\xbfone\r\ncaf\xe9\nt\0wo\nlast")
    lines = list(read_lines(stream, "a.txt", lambda error, line: errors.append(error)))
    assert lines == [(1, "one\r\n"), (4, "last")]
    assert [error.line for error in errors] == [2, 3]
    assert "byte 4 (0xE9) is not UTF-8" in str(errors[0])
    assert "character 2 is a NUL" in str(errors[1])


def test_lines_with_errors_keep_their_order():
    lines = list(read_lines_with_errors(io.BytesIO(b"one\n\xff\n"), "a.txt"))
    assert [(number, error is None) for number, _, error in lines] == [(1, True), (2, False)]


def test_line_ends():
    assert [strip_line_end(line) for line in ("a\r\n", "a\n", "a", "a \n")] == ["a", "a", "a", "a "]


def test_strings_inside_values_are_checked():
    check_strings({"a": ["fine", 3, None]}, Place("a.jsonl", 1), "")
    with pytest.raises(DataError, match=r"line 1, column a\[1\]: character 1 is half of a surrogate pair"):
        check_strings({"a": ["fine", "\ud83d"]}, Place("a.jsonl", 1), "")
