"""Rows of files for every task, with all their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.predict.batch.files import put

from regard.predict.batch.read_options import TrainingReadOptions
from regard.predict.batch.rows import file_rows, text_rows


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
        ("a.csv", "doc_id,text\n1,Ida came\n", "tag", "Ida came", {"doc_id": "1", "text": "Ida came"}),
        ("a.conll", "-DOCSTART- O\n\nIda O\n\n", "tag", "Ida", {"tokens": ["Ida"], "tags": ["O"]}),
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
    options = {"id": "q7", "question": "who?", "answers": []}
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "Ida came.", "qas": [options]}]}]}
    (row,) = file_rows(put(tmp_path / "a.json", json.dumps(squad)), "answer")
    assert (row.item.question, row.item.context) == ("who?", "Ida came.")
    assert row.columns == {**options, "context": "Ida came.", "title": "t"}


def test_texts() -> None:
    assert [row.columns for row in text_rows(["a", "b"], "classify")] == [{"text": "a"}, {"text": "b"}]
    assert [row.columns for row in text_rows(["a", "b"], "pair")] == [{"first": "a", "second": "b"}]
    assert [row.item for row in text_rows(["a", "b"], "answer", context="c")] == [("a", "c"), ("b", "c")]
