"""Labels: several in a cell, in columns of their own, and those that look like several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import fields, write_file

from regard.data.check.run import check
from regard.data.labels import infer_separator, joined_labels
from regard.data.readers import read
from regard.data.schema.columns import parse_columns
from regard.errors import DataError, InputError

COMBINED = ["billing", "login", "refund", "billing, login", "login, refund", "billing, login, refund"]


def labels(path: Path, **options: Any) -> list[Any]:
    return fields(read(path, **options), "label")


@pytest.mark.parametrize(
    ("cells", "separator", "expected"),
    [
        (["a, b", "a"], ",", [("a", "b"), ("a",)]),
        (["a;b", " a ; c "], ";", [("a", "b"), ("a", "c")]),
        (["a|b", "a, x|c"], "|", [("a", "b"), ("a, x", "c")]),
        (["a, x;b", "a"], ";", [("a, x", "b"), ("a",)]),
        (["a", "b"], None, [("a",), ("b",)]),
        (["a,", ""], ",", [("a",), ()]),
        (['["a, b", "c"]', "[]"], None, [("a, b", "c"), ()]),
    ],
)
def test_the_separator_is_the_one_that_occurs_and_is_reported(
    tmp_path: Path, cells: list[str], separator: str | None, expected: list[Any]
) -> None:
    assert infer_separator(cells) == separator
    rows = "".join(f"t{number}\t{cell}\n" for number, cell in enumerate(cells))
    reader = read(write_file(tmp_path / "a.tsv", f"text\tlabel\n{rows}"), labels="multi")
    assert fields(reader, "label") == expected
    assert f'labels are separated by "{separator or "|"}"' in str(reader.schema)
    assert f'labels are separated by "{separator or "|"}"' in check(tmp_path / "a.tsv", labels="multi").format


def test_other_files_have_the_separator_of_the_first(tmp_path: Path) -> None:
    first = write_file(tmp_path / "train.tsv", "text\tlabel\nx\tParis, France;new\n")
    second = write_file(tmp_path / "dev.tsv", "text\tlabel\ny\tParis, France\n")
    assert labels(second, labels="multi") == [("Paris", "France")]
    assert labels(second, like=read(first, labels="multi").schema) == [("Paris, France",)]
    assert fields(read([first, second], labels="multi"), "label")[1] == ("Paris, France",)


def test_one_hot_columns(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "id,text,billing,log in\n1,x,1,0\n2,y,true,yes\n3,z,0,\n")
    columns = parse_columns("text=text,label=billing,log in")
    assert columns == {"text": "text", "label": ("billing", "log in")}
    reader = read(path, columns=columns)
    assert fields(reader, "label") == [("billing",), ("billing", "log in"), ()]
    assert str(reader.schema).endswith("unused columns: id; one label for each of 2 columns")
    assert labels(path, columns={"label": ["2", "3"]}) == [("billing",), ("billing", "log in"), ()]
    with pytest.raises(DataError, match=r"line 3: 2 of the label columns are 1 \(billing, log in\); expected one"):
        labels(path, columns=columns, labels="single")
    single = write_file(tmp_path / "b.csv", "text,a,b\nx,1,0\ny,0,1\n")
    assert labels(single, columns={"label": ["a", "b"]}, labels="single") == ["a", "b"]
    bare = write_file(tmp_path / "c.csv", "x,1,0\ny,0,1\n")
    assert labels(bare, columns=parse_columns("text=0,label=1,2"), header=False) == [("1",), ("2",)]
    with pytest.raises(DataError, match=r'line 2, column b: is "2"; expected 1 or 0, as in a one-hot column'):
        labels(write_file(tmp_path / "d.csv", "text,a,b\nx,1,2\n"), columns={"label": ["a", "b"]})
    with pytest.raises(DataError, match='there is no column "c" for the role label'):
        read(single, columns={"label": ["a", "c"]})
    with pytest.raises(InputError, match="numbers are read from one column"):
        read(single, columns={"label": ["a", "b"]}, labels="number")
    with pytest.raises(InputError, match="text is a, b; only label can have several columns"):
        parse_columns("text=a,b")


def test_pairs_can_have_one_hot_labels(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "premise,hypothesis,x,y\na,b,1,0\n")
    assert labels(path, columns={"label": ["x", "y"]}) == [("x",)]


@pytest.mark.parametrize(
    ("names", "separator"),
    [
        (COMBINED, ","),
        ([name.replace(", ", ";") for name in COMBINED], ";"),
        (["a", "b", "c"], None),
        (["Paris, France", "Lyon, France", "Bonn, Germany", "Kiel, Germany"], None),
        (["yes, please", "no, thanks", "maybe"], None),
        (["a long name that is, all in all, a sentence of its own and so no label at all", "x, x"], None),
        ([], None),
    ],
)
def test_labels_that_are_combinations_are_found(names: list[str], separator: str | None) -> None:
    result = joined_labels(names)
    assert (None if result is None else result.separator) == separator
