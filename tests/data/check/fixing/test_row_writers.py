"""Rows are written in every format without losing values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.data.helpers import fields, write_file

from regard import cli
from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.readers import read
from regard.errors import InputError


def test_parquet_aligned_files_and_text(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a cafÃ©", "b"], "label": ["x", "y"]}), tmp_path / "a.parquet")
    write_fixed_copy(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "b.parquet").to_pylist()[0] == {"text": "a café", "label": "x"}
    write_file(tmp_path / "a.en", "one\ntwo\ntwo\n")
    write_file(tmp_path / "a.de", "eins\nzwei\nzwei\n")
    write_fixed_copy((tmp_path / "a.en", tmp_path / "a.de"), tmp_path / "b.tsv")
    assert (tmp_path / "b.tsv").read_text() == "en\tde\none\teins\ntwo\tzwei\n"
    write_fixed_copy(
        write_file(tmp_path / "a.txt", "first\u200b line\nsecond line\n\nother document\n"), tmp_path / "b.txt"
    )
    assert (tmp_path / "b.txt").read_text() == "first line\nsecond line\n\nother document\n\n"


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.parquet"])
def test_json_rows_keep_their_columns_in_a_table(tmp_path: Path, name: str) -> None:
    rows: list[dict[str, Any]] = [{"text": "one", "label": "x", "note": None}, {"label": "y", "text": "two"}]
    many = [{"text": f"row {number}", "label": "x", "note": None} for number in range(5000)]
    rows += [*many, {"text": "three", "label": "x", "note": "late"}]
    path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write_fixed_copy(path, tmp_path / name)
    results = list(read(tmp_path / name))
    assert fields(results, "text", "label") == [(row["text"], row["label"]) for row in rows]
    more = write_file(tmp_path / "c.jsonl", path.read_text() + '{"text": "four", "label": "y", "source": "z"}\n')
    with pytest.raises(InputError, match=r'a row has "source", which the first row does not have.*ends in \.jsonl'):
        write_fixed_copy(more, tmp_path / f"more-{name}")
    assert not (tmp_path / f"more-{name}").exists()


def test_column_of_two_types_is_refused_in_parquet(tmp_path: Path) -> None:
    rows = [{"text": f"row {number}", "label": "x", "size": 1 if number < 5000 else "large"} for number in range(5001)]
    path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"different types.*ends in \.jsonl"):
        write_fixed_copy(path, tmp_path / "b.parquet")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.jsonl"]


def test_conll_as_json_lines(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.conll", "Ada NNP B-PER\nsang VBD O\n\nin IN O\nBath NNP B-LOC\n")
    write_fixed_copy(path, tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[0]) == {
        "tokens": ["Ada", "sang"],
        "tags": ["B-PER", "O"],
    }
    assert len(list(read(tmp_path / "b.jsonl"))) == 2
    with pytest.raises(InputError, match=r"CoNLL cannot be written as .csv. Use a file name that ends in .con"):
        write_fixed_copy(path, tmp_path / "b.csv")
    with pytest.raises(InputError, match=r"cannot be written as an Excel workbook"):
        write_fixed_copy(write_file(tmp_path / "a.csv", "text,label\nx,y\n"), tmp_path / "b.xlsx")


DOCUMENTS = "-DOCSTART- O\n\nAda B-PER\n\nsang O\n\n-DOCSTART- O\n\nin O\n\n"


def test_documents_stay_apart(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.conll", DOCUMENTS)
    for name in ("b.conll", "b.jsonl"):
        write_fixed_copy(path, tmp_path / name)
        assert fields(read(tmp_path / name), "right_context") == [("sang",), (), ()]
    assert (tmp_path / "b.conll").read_text() == DOCUMENTS
    several = [path, write_file(tmp_path / "c.conll", "-DOCSTART- O\n\nBath B-LOC\n")]
    for name in ("d.conll", "d.jsonl"):
        write_fixed_copy(several, tmp_path / name)
        assert fields(read(tmp_path / name), "right_context") == [("sang",), (), (), ()]


def test_format_that_is_not_written_is_an_error(tmp_path: Path) -> None:
    table = write_file(tmp_path / "a.csv", "text,label\nx,y\n")
    with pytest.raises(InputError, match=r"format json cannot be written. Use a file name that ends in \.csv,"):
        write_fixed_copy(table, tmp_path / "b.json")
    rows = write_file(tmp_path / "a.json", '[{"text": "x", "label": "y"}]')
    write_fixed_copy(rows, tmp_path / "c.json")  # as JSON lines
    assert (tmp_path / "c.json").read_text() == '{"text": "x", "label": "y"}\n'


def test_format_of_the_copy_is_checked_before_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_file(tmp_path / "a.csv", "text,label\nx,y\n")
    html = tmp_path / "report.html"
    outputs = ["--fix", str(tmp_path / "b.json"), "--html", str(html)]
    assert cli.main(["check", str(path), *outputs]) == 1
    assert "files of the format json cannot be written" in capsys.readouterr().err
    assert not html.exists()


def test_carriage_return_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'text,label\n"a\rb",x\nc,y\n')
    write_fixed_copy(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes() == b'text,label\n"a\rb",x\nc,y\n'
