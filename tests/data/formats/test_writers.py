"""Rows as CSV, TSV, JSON lines and Parquet: nothing is lost, and what is written reads back."""

from __future__ import annotations

import csv
import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.formats import writers as tables
from regard.data.formats.writers import json_line, output_format, table_file
from regard.data.readers import read
from regard.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": 'a "quoted"\ttext', "scores": {"a": 0.5, "b": 0.5}, "names": [], "mixed": 1, "none": None},
    {"id": 2, "text": "two\r\nlines\rand, more", "scores": {"b": 1.0}, "names": ["x"], "mixed": "one", "empty": {}},
    {"id": 2**70, "text": "naïve \u2028 日本", "scores": {}, "names": ["x", "y"], "mixed": [1], "late": True},
]


def written(target: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    with table_file(target, **more) as write:
        for row in rows:
            write(row)
    return target


def test_json_lines(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.anything", ROWS).read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines if line] == ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.TSV", "\t")])
def test_tables(tmp_path: Path, name: str, delimiter: str) -> None:
    with written(tmp_path / name, ROWS, last=("scores",)).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert list(rows[0]) == ["id", "text", "names", "mixed", "none", "empty", "late", "scores"]
    assert [row["text"] for row in rows] == [row["text"] for row in ROWS]
    assert [json.loads(row["scores"]) for row in rows] == [row["scores"] for row in ROWS]
    assert [row["late"] for row in rows] == ["", "", "true"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GROUP", 2)
    path = written(tmp_path / "a.parquet", ROWS)
    rows = pyarrow.parquet.read_table(path).to_pylist()
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2
    assert [row["text"] for row in rows] == [row["text"] for row in ROWS]
    assert [row["mixed"] for row in rows] == ["1", "one", "[1]"]
    assert [row["id"] for row in rows] == ["1", "2", str(2**70)]
    assert [row["names"] for row in rows] == [[], ["x"], ["x", "y"]]
    assert [row["late"] for row in rows] == [None, None, True]
    assert rows[1]["scores"] == {"a": None, "b": 1.0}
    assert [row["empty"] for row in rows] == [None, "{}", None]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(CELLS.filter(str.strip), CELLS), min_size=1, max_size=6))
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_what_is_written_reads_back(tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: Any) -> None:
    path = tmp_path_factory.mktemp("tables") / f"a.{suffix}"
    written(path, [{"text": text, "note": note, "label": "x"} for text, note in rows])
    reader = read(path, task="text", columns={"text": "text"})
    assert [row.values["text"] for row, _ in reader.with_rows()] == [text for text, _ in rows]
    assert [row.values["note"] or "" for row, _ in reader.with_rows()] == [note for _, note in rows]


def test_what_json_has_no_type_for_is_text() -> None:
    row = {"day": datetime.date(2020, 1, 2), "raw": b"a\xff", "other": 1 + 2j}
    assert json.loads(json_line(row)) == {"day": "2020-01-02", "raw": "a\\xff", "other": "(1+2j)"}


def test_names_that_promise_what_is_not_written() -> None:
    assert [output_format(Path(name)) for name in ("a", "a.json", "a.tab", "a.Parquet")] == [
        *("jsonl", "jsonl", "tsv", "parquet")
    ]
    with pytest.raises(InputError, match=r"Use a\.csv"):
        output_format(Path("a.xlsx"))
    with pytest.raises(InputError, match="compressed"):
        output_format(Path("a.csv.gz"))
