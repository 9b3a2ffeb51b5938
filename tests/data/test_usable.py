"""Rows that can be read, but not used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
from regard.data.readers import read
from regard.data.usable import usable_check
from regard.errors import DataError

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
