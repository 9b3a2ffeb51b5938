"""Answers of every kind of model in one form."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.look.models import KINDS, PAIR, TEXT, look_input

import regard
from regard.look.answer import answer_of


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("encoder", "none"),
        ("classifier", "classes"),
        ("masked", "none"),
        ("gpt2", "next"),
        ("llama", "next"),
        ("translator", "translation"),
        ("gru", "translation"),
    ],
)
def test_kinds_of_answers(kind: str, answer: str) -> None:
    assert answer_of(KINDS[kind](), look_input()).kind == answer


def test_classes_are_those_of_predict(trained: Path) -> None:
    model = regard.load(trained)
    answer = answer_of(model, look_input("a lovely film"))
    expected = model.predict(["a lovely film"])[0].json()
    assert answer.text == expected["label"]
    assert dict(answer.bars) == pytest.approx(expected["scores"])


def test_masks_are_filled() -> None:
    answer = answer_of(KINDS["masked"](), look_input("the [MASK] burned"))
    assert answer.kind == "masks"
    assert len(answer.bars) == 8


def test_next_words_have_probabilities() -> None:
    answer = answer_of(KINDS["gpt2"](), look_input(TEXT))
    assert 0 < sum(score for _, score in answer.bars) <= 1.001
    assert [score for _, score in answer.bars] == sorted((score for _, score in answer.bars), reverse=True)


def test_pairs() -> None:
    assert answer_of(KINDS["classifier"](), look_input(TEXT, PAIR)).kind == "classes"
