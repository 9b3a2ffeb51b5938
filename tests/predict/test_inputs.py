"""Texts, pairs, dicts and records as inputs, and errors for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.predict.foreign import REVIEWS

import regard
from regard.data.records import ClassifyRecord, PairRecord
from regard.errors import InputError


def test_a_text_of_nothing_visible_is_refused() -> None:
    model = regard.load("minilm", device="cpu")
    with pytest.raises(InputError, match="text 1 has no token"):
        model.embed(["a", "\u200b"])
    with pytest.raises(InputError, match="the text has no token"):
        model.attention("")


def test_texts_dicts_and_records_are_the_same(trained: Path) -> None:
    model = regard.load(trained, device="cpu")
    kinds: list[Any] = [
        REVIEWS[0],
        {"text": REVIEWS[0]},
        {"review": REVIEWS[0], "label": "?"},
        ClassifyRecord(REVIEWS[0]),
    ]
    assert len({answer.json()["score"] for answer in model.predict(kinds)}) == 1
    assert model.predict([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("a text", "one str was given where a list was expected"),
        (7, "a list was expected"),
        ([7], r"input 0 is 7 \(int\); this model needs a text"),
        ([None, "fine"], r"input 0 is None \(NoneType\); this model needs a text"),
        (["fine", " "], "input 1 holds an empty text"),
        ([{"tweeet": "a"}], 'input 0 has tweeet; expected "text" among them'),
        ([("a", "b")], "this model needs a text"),
        ([PairRecord("a", "b")], "input 0 is a PairRecord; this model needs a text"),
    ],
)
def test_what_cannot_be_answered(trained: Path, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        regard.load(trained, device="cpu").predict(options)
