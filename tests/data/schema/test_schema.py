"""Columns, labels and formats are inferred from the beginning of a file, or given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import text_and_label, write_file

from regard.data.readers import read
from regard.data.schema.columns import check_roles, parse_columns
from regard.errors import InputError


def test_roles_have_a_singular() -> None:
    assert check_roles({"token": 0, "tag": "3"}) == {"tokens": "0", "tags": "3"}
    assert parse_columns("first=#1 String,label=3") == {"first": "#1 String", "label": "3"}
    for wrong in ("text", "text=", "=a", ""):
        with pytest.raises(InputError, match="is not ROLE=NAME"):
            parse_columns(wrong)


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"),
    [
        ("a.csv", "text,label\nx,1.5\ny,2\n", {}, [("x", 1.5), ("y", 2.0)]),
        ("a.csv", "text,score\nx,1\ny,2\n", {}, [("x", 1.0), ("y", 2.0)]),
        ("a.csv", "text,label\nx,1\ny,0\n", {}, [("x", "1"), ("y", "0")]),
        ("a.csv", "text,label\nx,1\ny,\n", {}, [("x", "1"), ("y", None)]),
        ("a.csv", "text,label\nx,a|b\ny,a\nz,\n", {}, [("x", ("a", "b")), ("y", ("a",)), ("z", ())]),
        ("a.csv", "text,label\nx,a|b\ny,a\n", {"labels": "class"}, [("x", "a|b"), ("y", "a")]),
        ("a.csv", 'text,label\nx,"[""a"", ""b""]"\n', {}, [("x", ("a", "b"))]),
        ("a.jsonl", '{"text": "x", "label": ["a"]}\n{"text": "y", "label": []}', {}, [("x", ("a",)), ("y", ())]),
        ("a.jsonl", '{"text": "x", "label": 3}\n{"text": "y", "label": true}', {}, [("x", "3"), ("y", "true")]),
        ("a.csv", "review,stars\nx,5\n", {"columns": {"text": "review", "label": "stars"}}, [("x", "5")]),
        ("a.csv", "phrase,mood\nx,good\n", {"columns": {"text": "phrase", "label": 1}}, [("x", "good")]),
        ("a.tsv", "s\t1\t\tx y\n", {"columns": {"label": "1", "text": "3"}}, [("x y", "1")]),
        ("a.tsv", "x y\tpos\nz w\tneg\nu v\tpos\nw v\tneg\n", {}, [("x y", "pos"), ("z w", "neg")]),
        ("a.tsv", "phrase\tmood\nx y\tpos\nz w\tneg\nu v\tpos\nw v\tneg\n", {}, [("x y", "pos"), ("z w", "neg")]),
        ("a.csv", "\ufefftext,label\r\nx,a\r\n\r\n", {}, [("x", "a")]),
        ("a.csv", "text\nx\ny\n", {"task": "classify"}, [("x", None), ("y", None)]),
        ("a.tsv", 'text\tlabel\n"x" y\t1\n" z\t0\n', {}, [('"x" y', "1"), ('" z', "0")]),
    ],
)
def test_labels_and_columns(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], expected: list[Any]
) -> None:
    assert text_and_label(read(write_file(tmp_path / name, content), **options))[: len(expected)] == expected


@pytest.mark.parametrize(
    ("name", "content", "format", "task", "columns"),
    [
        ("a.csv", "premise,hypothesis,label\na,b,c\n", "csv", "pair", "first=premise, second=hypothesis, label=label"),
        (
            "a.tsv",
            "question\tsentence\tlabel\na\tb\tc\n",
            "tsv",
            "pair",
            "first=question, second=sentence, label=label",
        ),
        ("a.tsv", "#1 String\t#2 String\tQuality\na\tb\t1\n", "tsv", "pair", "first=#1 String, second=#2 String"),
        ("a.tsv", "Good day.\tBuen día.\nGo on.\tSigue.\n", "tsv", "translate", "source=0, target=1"),
        ("a.txt", "EU B-ORG\nsays O\n\nHi O\n", "conll", "tag", "tokens=0, tags=1"),
        ("a.tsv", "EU\tB-ORG\nsays\tO\n\nHi\tO\n", "conll", "tag", "tokens=0, tags=1"),
        ("a.txt", "Once upon a time.\nMore.\n\nAgain.\n", "text", "text", "text=text"),
        ("a.jsonl", '{"text": "x"}\n', "jsonl", "text", "text=text"),
        ("a", '{"text": "x", "entities": []}\n', "jsonl", "tag", "entities=entities, text=text"),
        ("a.txt", "text\tlabel\nx\ty\n", "tsv", "classify", "text=text, label=label"),
        ("a", "label,text\nx,y\n", "csv", "classify", "text=text, label=label"),
        ("a.json", '[{"src": "a", "tgt": "b"}]', "json", "translate", "source=src, target=tgt"),
    ],
)
def test_format_and_task_are_recognized_and_reported(
    tmp_path: Path, name: str, content: str, format: str, task: str, columns: str
) -> None:
    reader = read(write_file(tmp_path / name, content))
    assert (reader.schema.format, reader.schema.task) == (format, task)
    assert str(reader.schema).startswith(f"{format} for {task} ({columns}")
    assert reader.schema.reason
    assert list(reader)


def test_columns_that_are_not_used_are_reported(tmp_path: Path) -> None:
    reader = read(write_file(tmp_path / "a.csv", "\n\nid;text;label;when\n1;x;y;z\n"))
    assert str(reader.schema).endswith("unused columns: id, when")
    assert text_and_label(reader) == [("x", "y")]


def test_another_file_is_read_like_the_first(tmp_path: Path) -> None:
    first = read(write_file(tmp_path / "train.csv", "text,label\nx,a|b\n"))
    second = write_file(tmp_path / "dev.csv", "text,label\ny,a\n")
    assert text_and_label(read(second)) == [("y", "a")]
    assert text_and_label(read(second, like=first.schema)) == [("y", ("a",))]
    assert text_and_label(read([tmp_path / "train.csv", second])) == [("x", ("a", "b")), ("y", ("a",))]
