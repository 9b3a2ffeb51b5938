"""Rows of files for every task, with all their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import DataError
from regard.predict.batch.read_options import TrainingReadOptions
from regard.predict.batch.rows import file_rows, text_rows


def put(path: Path, content: str) -> str:
    path.write_text(content)
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "task", "item", "columns"),
    [
        ("a.txt", "one\ntwo\n", "classify", "one", {"text": "one"}),
        ("a.csv", "id,text,label\n1,one,x\n2,two,y\n", "classify", "one", {"id": "1", "text": "one", "label": "x"}),
        ("a.csv", "one,x\ntwo,y\nthree,x\nfour,y\n", "classify", "one", {"text": "one", "1": "x"}),
        (
            "a.jsonl",
            '{"id": 7, "text": "one", "more": [1]}\n',
            "classify",
            "one",
            {"id": 7, "text": "one", "more": [1]},
        ),
        ("a.conll", "Ida B-PER\ncame O\n\n", "tag", "Ida came", {"tokens": ["Ida", "came"], "tags": ["B-PER", "O"]}),
        ("a.jsonl", '{"n": 1, "tokens": ["Ida", "came"]}\n', "tag", "Ida came", {"n": 1, "tokens": ["Ida", "came"]}),
        ("a.csv", "n,text\n1,Ida came\n", "tag", "Ida came", {"n": "1", "text": "Ida came"}),
        ("a.csv", "n,en,de\n1,one,eins\n", "translate", "one", None),
    ],
)
def test_columns_are_kept(tmp_path: Path, name: str, content: str, task: str, item: str, columns: Any) -> None:
    path = put(tmp_path / name, content)
    if columns is None:
        (row, *_) = file_rows(path, task, read_options=TrainingReadOptions({"source": "en", "target": "de"}))
        assert row.columns == {"n": "1", "en": "one", "de": "eins"}
    elif "1" in columns:
        (row, *_) = file_rows(path, task, columns={"text": 0})
        assert row.columns == columns
    else:
        (row, *_) = file_rows(path, task)
        assert row.columns == columns
    assert row.item.text == item


def test_pairs_and_questions_keep_their_columns(tmp_path: Path) -> None:
    pairs = put(tmp_path / "a.csv", "id,sentence1,sentence2,label\n1,a,b,x\n")
    (row,) = file_rows(pairs, "pair")
    assert (row.item.first, row.item.second) == ("a", "b")
    assert row.columns == {"id": "1", "sentence1": "a", "sentence2": "b", "label": "x"}
    asked = {"id": "q7", "question": "who?", "answers": []}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "Ida came.", "qas": [asked]}]}]}
    (row,) = file_rows(put(tmp_path / "a.json", json.dumps(squad)), "answer")
    assert (row.item.question, row.item.context) == ("who?", "Ida came.")
    assert row.columns == {**asked, "context": "Ida came.", "title": "t"}


def test_remembered_columns_are_used_where_the_file_has_them(tmp_path: Path) -> None:
    named = TrainingReadOptions({"text": "opinion", "label": "stars"})
    both = put(tmp_path / "a.csv", "text,opinion\nno,yes\n")
    other = put(tmp_path / "b.csv", "text,label\nyes,a\n")
    assert next(file_rows(both, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(other, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(both, "classify", read_options=named, columns={"text": "text"})).item.text == "no"
    pairs = put(tmp_path / "c.csv", "left,right\na,b\n")
    assert (
        next(
            file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "left", "second": "right"}))
        ).item.second
        == "b"
    )
    with pytest.raises(DataError):
        next(file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "other", "second": "right"})))


def test_numbers_of_columns_are_for_files_without_names(tmp_path: Path) -> None:
    named = put(tmp_path / "a.csv", "id,text\n1,yes\n")
    assert next(file_rows(named, "classify", read_options=TrainingReadOptions({"text": "0"}))).item.text == "yes"


def test_texts() -> None:
    assert [row.columns for row in text_rows(["a", "b"], "classify")] == [{"text": "a"}, {"text": "b"}]
    assert [row.columns for row in text_rows(["a", "b"], "pair")] == [{"first": "a", "second": "b"}]
    assert [row.item for row in text_rows(["a", "b"], "answer", context="c")] == [("a", "c"), ("b", "c")]


def test_the_encoding_of_the_training_is_for_files_that_are_not_utf8(tmp_path: Path) -> None:
    named = TrainingReadOptions(encoding="mac-roman")
    (tmp_path / "a.txt").write_bytes("Zoé, née là\n".encode("mac-roman"))
    (tmp_path / "b.txt").write_bytes("Zoé, née là\n".encode())
    for name in ("a.txt", "b.txt"):
        assert next(file_rows(str(tmp_path / name), "classify", read_options=named)).item.text == "Zoé, née là"


@pytest.mark.parametrize("damage", [None, [], {"columns": [1]}, {"columns": {"text": 7, "what": "a"}, "separator": 5}])
def test_a_damaged_memory_is_none(damage: Any) -> None:
    assert TrainingReadOptions.of(damage) == TrainingReadOptions()
