"""Columns are inferred from names and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import text_and_label, write_file

from regard.data.readers import read


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
