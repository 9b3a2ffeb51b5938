"""Entities, tags and answers are fixed if the result is certain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.data.helpers import fields, write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.readers import read


def test_entities_move_with_their_text(tmp_path: Path) -> None:
    text = "the cafÃ© of Ada Hill in Bath"
    start = text.index("Ada")
    row: dict[str, Any] = {"text": text, "entities": [{"start": start, "end": start + 9, "label": "PER"}]}
    path = write_file(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    done = write_fixed_copy(path, tmp_path / "b.jsonl")
    fixed = json.loads((tmp_path / "b.jsonl").read_text(encoding="utf-8"))
    assert fixed["text"] == "the café of Ada Hill in Bath"
    assert fixed["entities"] == [{"start": 12, "end": 20, "label": "PER"}]
    assert set(done.changes) == {"texts with encoding damage repaired", "entities with spaces at a boundary trimmed"}


def test_entities_start_with_b(tmp_path: Path) -> None:
    content = "Ada B-PER\nsang O\n\nin O\nBath B-LOC\n\nthen O\nMary I-PER\nHill I-PER\nleft O\n\n"
    write_fixed_copy(write_file(tmp_path / "a.conll", content), tmp_path / "b.conll")
    assert (tmp_path / "b.conll").read_text() == content.replace("Mary I-PER", "Mary B-PER")


def test_start_of_an_answer_that_occurs_once_is_corrected(tmp_path: Path) -> None:
    def question(answer: str, start: int) -> dict[str, Any]:
        return {"question": f"{answer}?", "id": answer, "answers": [{"text": answer, "answer_start": start}]}

    article = {
        "title": "T",
        "paragraphs": [{"context": "a b c, a d", "qas": [question("b", 0), question("a", 1), question("d", 9)]}],
    }
    done = write_fixed_copy(write_file(tmp_path / "a.json", json.dumps({"data": [article]})), tmp_path / "b.jsonl")
    answers = dict(fields(read(tmp_path / "b.jsonl"), "id", "answers"))
    assert answers == {"b": (("b", 2),), "d": (("d", 9),)}
    assert dict(done.changes) == {"starts of answers corrected": 1}
    assert len(done.left_out) == 1
