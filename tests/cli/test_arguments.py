"""Texts from arguments, stdin and files."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.cli.arguments import check_not_files, check_texts, read_texts
from regard.cli.output import UsageError
from regard.errors import DataError


@pytest.mark.parametrize(
    ("columns", "content", "texts"),
    [
        (None, "één\ntwee", ["één", "twee"]),
        ("text=said", "said,label\néén,b\n", ["één"]),
        ("text=said", '{"said": "one"}\n{"said": "two"}\n', ["one", "two"]),
    ],
)
def test_texts_from_stdin(monkeypatch: pytest.MonkeyPatch, columns: str | None, content: str, texts: list[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert read_texts("-", columns) == texts


def test_a_table_from_stdin_by_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text,label\na,b\n")))
    assert read_texts("-", format="csv") == ["a"]
    with pytest.raises(UsageError, match="--format was given without --input"):
        check_texts(("a",), None, None, format="csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "first, second\nthird\tfourth\n"),
        ("a.log", "first, second\nthird\tfourth\n"),
        ("a", "first, second\r\nthird\tfourth"),
        ("a.csv", 'id,text\n1,"first, second"\n2,third\tfourth\n'),
        ("a.jsonl", '{"id": 7, "text": "first, second"}\n\n{"text": "third\\tfourth"}\n'),
        ("a.json", '[{"text": "first, second"}, {"text": "third\\tfourth"}]'),
    ],
)
def test_texts_from_any_format(tmp_path: Path, name: str, content: str) -> None:
    path, packed = tmp_path / name, tmp_path / f"{name}.gz"
    path.write_bytes(content.encode())
    packed.write_bytes(gzip.compress(content.encode()))
    assert read_texts(str(path)) == read_texts(str(packed)) == ["first, second", "third\tfourth"]


def test_texts_from_parquet_and_a_named_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"said": ["one", "two"], "n": [1, 2]}), tmp_path / "a.parquet")
    assert read_texts(str(tmp_path / "a.parquet"), "text=said") == ["one", "two"]
    with pytest.raises(DataError, match="--columns text=NAME"):
        read_texts(str(tmp_path / "a.parquet"))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"is plain text and has no columns, but columns were given \(text=said\)"):
        read_texts(str(tmp_path / "a.txt"), "text=said")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty; expected at least one row"),
        ("a.txt", b"\n \n", "contains only whitespace"),
        ("a.txt", b"one\n\nthree\n", "line 2: holds an empty text. Remove the line, or give it words."),
        ("a.txt", b"one\n\xff\xfe\n", "line 2: byte 1 .* is not UTF-8"),
        ("a.csv", b"text\nx\n' '\n\"\"\n", "line 4: holds an empty text"),
        ("a.csv", b"first,second\nx,y\n", r"no columns for text \(task text\) were recognized"),
        ("a.jsonl", b'{"text": "x"}\n{"txt": "y"}\n', r'line 2: there is no "text" \(there is txt\)'),
        ("a.jsonl", b'{"text": "x"}\n[1]\n', "line 2: is a list"),
        ("a.jsonl", b'{"text": "x"}\n{"text": "y"\n', "line 2.*is not JSON"),
        ("a.jsonl", b'\n{"text": " "}\n', "line 2: holds an empty text"),
        ("none.txt", None, "does not exist"),
    ],
)
def test_files_that_cannot_be_read_say_where(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_texts(str(tmp_path / name))
    assert name in str(caught.value)


@pytest.mark.parametrize("text", ["missing.csv", "data/rows.jsonl.gz"])
def test_the_name_of_a_missing_file_is_no_text(text: str) -> None:
    with pytest.raises(UsageError, match=f'"{text}" does not exist'):
        check_not_files(["a text", text], False, "")
    check_not_files(["a text", text], True, "")


def test_texts_that_mention_files_are_texts() -> None:
    check_not_files(["see rows.csv", "it ended. then", "v1.2"], False, "")
