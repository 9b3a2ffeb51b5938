"""Values are quoted where a reader of CSV would misread them."""

import csv
import io

import pytest

from regard.data.formats.delimited.quoting import csv_row, needs, quoted


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
