"""Rows written in a format are read back as they were; what cannot be read is said with its line and column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.data.helpers import write_file

from regard.data.readers import read
from regard.data.records import (
    AnswerRecord,
    AnswerSpan,
    ClassifyRecord,
    DocumentRecord,
    PairRecord,
    Place,
    TagRecord,
    TranslateRecord,
)


def test_every_kind_of_record(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "a"), 1)
    lines: list[tuple[dict[str, Any], Any]] = [
        ({"text": "a", "label": "b"}, ClassifyRecord("a", "b", place=place)),
        ({"premise": "a", "hypothesis": "b", "label": "c"}, PairRecord("a", "b", "c", place=place)),
        (
            {"text": "in Rome", "entities": [{"start": 3, "end": 7, "label": "LOC", "text": "Rome"}]},
            TagRecord("in Rome", ((0, 2), (3, 7)), ("O", "B-LOC"), place=place),
        ),
        (
            {"context": "a b", "question": "c", "answers": "b"},
            AnswerRecord("1", "a b", "c", (AnswerSpan("b", 2),), place=place),
        ),
        (
            {"context": "b b", "question": "c", "answers": {"text": ["b"], "answer_start": [2]}},
            AnswerRecord("1", "b b", "c", (AnswerSpan("b", 2),), place=place),
        ),
        ({"context": "a", "question": "c"}, AnswerRecord("1", "a", "c", place=place)),
        ({"en": "a", "de": "b"}, TranslateRecord("a", "b", place=place)),
        ({"text": "a"}, DocumentRecord("a", place=place)),
    ]
    for values, expected in lines:
        assert list(read(write_file(tmp_path / "a", json.dumps(values)))) == [expected]
