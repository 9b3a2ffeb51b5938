"""Inputs are checked, then run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.predict.foreign import REVIEWS
from tests.predict.models import random_checkpoint

import regard
from regard.data.records import ClassifyRecord, PairRecord
from regard.errors import InputError
from regard.model import hooks as taps
from regard.predict import Model

# Texts, pairs, dicts and records as inputs, and errors for everything else.


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


# The network as it is run: compiled or not, with the hooks of the user.


def test_taps_are_seen_and_obeyed_by_a_compiled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled would not see them, so it must not run while one is set."""

    def compiled(*_: Any, **__: Any) -> Callable[..., Any]:
        def refuse(*_: Any) -> None:
            raise AssertionError("the compiled network ran")

        return refuse

    monkeypatch.setattr(torch, "compile", compiled)
    model = Model(random_checkpoint("tiny-bert"), compile=True)
    with taps.record(model.network, "encoder.layers.0") as recorded:
        model.outputs([[1, 2, 3]])
    assert tuple(recorded["encoder.layers.0"].shape) == (3, 32)
    with pytest.raises(AssertionError, match="the compiled network ran"):
        model.outputs([[1, 2, 3]])
