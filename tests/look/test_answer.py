"""Answers of every kind of model in one form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.look.models import KINDS, PAIR, TEXT, look_input

import regard
from regard.look.answer import answer_of, task_answer


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


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"answer": "", "start": None, "candidates": []}, "(no answer in this text)"),
        ({"entities": [{"text": "Paris", "label": "place", "start": 9, "end": 14, "score": 0.9}]}, "Paris (place)"),
        ({"entities": []}, "no entity"),
        ({"value": 3.25}, "3.25"),
        ({"labels": ["a", "b"], "scores": {"a": 0.9, "b": 0.8, "c": 0.1}}, "a, b"),
    ],
)
def test_every_kind_of_answer_has_words(answer: dict[str, Any], text: str) -> None:
    assert task_answer(answer).text == text


def test_candidates_and_similarities() -> None:
    best = {"answer": "the cook", "start": 0, "end": 8, "score": 0.7}
    span = task_answer({**best, "candidates": [best, {"answer": "", "score": 0.1}]})
    assert span.bars == (("the cook", 0.7), ("(no answer)", 0.1))
    assert span.spans[0]["end"] == 8
    assert task_answer({"similarity": 0.5}).kind == "similarity"
