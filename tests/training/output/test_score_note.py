"""Remarks on the final scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from regard.data.records import ClassifyRecord
from regard.metrics.confidence import Score
from regard.tasks.task import RowOutputs
from regard.training.output.score_note import score_note


@pytest.mark.parametrize(
    ("accuracy", "low", "words"),
    [
        (0.6, 0.5, "no better than guessing: {}, the model is right for 60.0%"),
        (0.75, 0.7, "no better than guessing: {}, the model is right for 75.0%"),
        (0.8, 0.7, "not clearly better than guessing: {}, the model for 70.0% to 95.0%"),
        (0.9, 0.76, None),
    ],
)
def test_a_classifier_that_may_be_no_better_than_guessing_is_noted(
    accuracy: float, low: float, words: str | None
) -> None:
    """The interval says whether it is better."""
    rows = [RowOutputs(ClassifyRecord("text", label=label), ()) for label in ("a", "b", "a", "a") * 5]
    result: Any = SimpleNamespace(scores={"accuracy": Score(accuracy, low, 0.95)})
    expected = 'always "a" would be right for 75.0% of the validation rows'
    assert score_note(rows, result, split_off=True) == (None if words is None else words.format(expected))


def test_few_validation_rows_are_noted() -> None:
    rows = [RowOutputs(ClassifyRecord("text", label="a"), ())] * 2
    result: Any = SimpleNamespace(scores={"accuracy": Score(1.0, 0.3, 1.0)})
    assert score_note(rows, result, split_off=False) is None
    assert (
        score_note(rows, result, split_off=True)
        == "scores of 2 validation rows say little; --folds 5 (regard.cross_validate) scores every row"
    )


def test_guessing_is_noted_with_few_rows_too() -> None:
    rows = [RowOutputs(ClassifyRecord("text", label=label), ()) for label in "aaab"]
    result: Any = SimpleNamespace(scores={"accuracy": Score(0.75, 0.3, 1.0)})
    assert score_note(rows, result, split_off=True) == (
        'scores of 4 validation rows say little, and are no better than guessing: always "a" would be right for 75.0% '
        "of the validation rows, the model is right for 75.0%; --folds 5 (regard.cross_validate) scores every row"
    )


def test_numbers_are_not_compared_with_guessing() -> None:
    rows = [RowOutputs(ClassifyRecord("text", label=1.5), ())]
    result: Any = SimpleNamespace(scores={"mse": Score(0.0, 0.0, 1.0)})
    assert score_note(rows, result, split_off=False) is None
    few = score_note(rows, result, split_off=True)
    assert few == "scores of 1 validation row say little; --folds 5 (regard.cross_validate) scores every row"
    assert score_note(rows * 20, result, split_off=True) is None


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("ab", ' (none has the label "b")'),
        ("abcd", ' (none has the label "b", "c" or "d")'),
        ("abcde", " (none has one of 4 of the 5 labels)"),
    ],
)
def test_labels_without_validation_rows_are_noted(labels: str, words: str) -> None:
    rows = [RowOutputs(ClassifyRecord("text", label="a"), ())] * 3
    result: Any = SimpleNamespace(scores={"accuracy": Score(1.0, 0.4, 1.0)})
    note = score_note(rows, result, split_off=True, labels=labels)
    assert note is not None
    assert note.startswith(f"scores of 3 validation rows say little{words}; --folds 5")


def test_several_labels_and_tags() -> None:
    result: Any = SimpleNamespace(scores={"f1": Score(1.0, 0.4, 1.0)})
    note = score_note([RowOutputs(ClassifyRecord("text", label=("a", "b")), ())], result, split_off=True)
    assert note is not None
    assert note.startswith("scores of 1 validation row say little; ")
    assert score_note([], result, split_off=True) is None
    assert score_note([], None, split_off=True) is None
