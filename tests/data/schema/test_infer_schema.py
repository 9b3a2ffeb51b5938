"""Format, task and columns are inferred from the beginning of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.helpers import write_file

from regard.data.readers import read


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
