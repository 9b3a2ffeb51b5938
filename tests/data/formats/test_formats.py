"""How formats are recognized, and what they share: lines, binary files and writers."""

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
from tests.data.helpers import text_and_label

from regard.data.formats import registry
from regard.data.formats import writers as tables
from regard.data.formats.format import FileStart, Format, by_suffix, never
from regard.data.formats.registry import formats
from regard.data.formats.writers import json_line, output_format, table_file
from regard.data.readers import read
from regard.errors import InputError


def test_recognized_by_name_or_never():
    sniff = by_suffix(".kv", ".pairs")
    assert sniff(FileStart(b"", ".pairs")) == "the name ends in .pairs"
    assert sniff(FileStart(b"", ".csv")) is None
    assert never(FileStart(b"", ".kv")) is None


@pytest.mark.parametrize(
    ("head", "suffix", "name"),
    [
        (b"text,label\na,b\n", ".csv", "csv"),
        (b'{"text": "a"}\n', ".jsonl", "jsonl"),
        (b"a\tb\n", ".tsv", "tsv"),
        (b"PAR1", "", "parquet"),
        (b"One line.\n\nOther document.\n", ".txt", "text"),
    ],
)
def test_formats_are_detected(head: bytes, suffix: str, name: str) -> None:
    result, reason = registry.detect_format(FileStart(head, suffix))
    assert result.name == name
    assert reason


def test_an_added_format_is_tried_first_and_can_be_removed():
    added = Format("toy", suffixes=(".csv",), sniff=by_suffix(".csv"), rows=lambda *_: iter(()))
    registry.register_format(added)
    try:
        assert next(iter(registry.formats())) == "toy"
        assert registry.detect_format(FileStart(b"", ".csv")) == (added, "the name ends in .csv")
    finally:
        registry.unregister_format("toy")
    with pytest.raises(InputError, match='there is no format "toy"'):
        registry.unregister_format("toy")
    assert {".csv", ".jsonl"} <= set(registry.table_suffixes())
    assert ".txt" in registry.known_suffixes()
    assert "csv" in registry.format_names()


ROWS = [{"text": 'one "two", three', "label": "a"}, {"text": "line\nbreak", "label": "b"}]


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "parquet"])
def test_rows_are_read_back(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source.csv"
    source.write_text('text,label\n"one ""two"", three",a\n"line\nbreak",b\n')
    path = tmp_path / f"copy.{name}"
    write = formats()[name].write
    assert write is not None
    with write(path, read(source).schema, "default") as write_row:
        for row in ROWS:
            write_row(row)
    assert text_and_label(read(path)) == [(row["text"], row["label"]) for row in ROWS]


WRITERS_ROWS: list[dict[str, Any]] = [
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
    lines = written(tmp_path / "a.anything", WRITERS_ROWS).read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines if line] == WRITERS_ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.TSV", "\t")])
def test_tables(tmp_path: Path, name: str, delimiter: str) -> None:
    with written(tmp_path / name, WRITERS_ROWS, last=("scores",)).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert list(rows[0]) == ["id", "text", "names", "mixed", "none", "empty", "late", "scores"]
    assert [row["text"] for row in rows] == [row["text"] for row in WRITERS_ROWS]
    assert [json.loads(row["scores"]) for row in rows] == [row["scores"] for row in WRITERS_ROWS]
    assert [row["late"] for row in rows] == ["", "", "true"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GROUP", 2)
    path = written(tmp_path / "a.parquet", WRITERS_ROWS)
    rows = pyarrow.parquet.read_table(path).to_pylist()
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2
    assert [row["text"] for row in rows] == [row["text"] for row in WRITERS_ROWS]
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
