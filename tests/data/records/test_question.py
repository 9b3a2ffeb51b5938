"""Questions with answers come back from every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import TEXT, fields, same_folder, table, write_file

from regard.data.readers import read
from regard.data.records import (
    AnswerSpan,
)


@same_folder
@given(st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), min_size=1, max_size=4))
def test_questions_come_back(tmp_path: Path, parts: list[tuple[str, str, str, str]]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": str(number),
            "context": before + answer + after,
            "question": question,
            "answers": [{"text": answer, "answer_start": len(before)}] if answer else [],
        }
        for number, (before, answer, after, question) in enumerate(parts)
    ]
    expected = [
        (
            row["id"],
            row["context"],
            row["question"],
            tuple(AnswerSpan(a["text"], a["answer_start"]) for a in row["answers"]),
        )
        for row in rows
    ]
    article = {"title": "t", "paragraphs": [{"context": r["context"], "qas": [r]} for r in rows]}
    write_file(tmp_path / "squad.json", json.dumps({"version": "1", "data": [article]}))
    write_file(tmp_path / "flat.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    cells = [(r["id"], r["context"], r["question"], json.dumps(r["answers"])) for r in rows]
    write_file(tmp_path / "flat.csv", table(cells, ("id", "context", "question", "answers")))
    for name in ("squad.json", "flat.jsonl", "flat.csv"):
        result = read(tmp_path / name)
        assert result.schema.task == "answer"
        assert fields(result, "id", "context", "question", "answers") == expected


def test_squad_two_and_groups(tmp_path: Path) -> None:
    questions = [
        {"id": "1", "question": "q", "answers": [{"text": "b", "answer_start": 2}], "is_impossible": False},
        {"id": "2", "question": "r", "answers": [], "is_impossible": True, "plausible_answers": [{"text": "x"}]},
    ]
    content = {"data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": questions}]}]}
    results = list(read(write_file(tmp_path / "dev-v2.0.json", json.dumps(content))))
    assert fields(results, "id", "answerable", "group") == [("1", True, "T"), ("2", False, "T")]
    path = write_file(tmp_path / "a.csv", "text,label,user\nx,a,u1\n")
    assert [record.group for record in read(path, columns={"group": "user"})] == ["u1"]
