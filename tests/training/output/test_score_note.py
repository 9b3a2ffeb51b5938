"""Remarks on the final scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from regard.data.records import ClassifyRecord
from regard.metrics.confidence import Score
from regard.tasks.task import RowOutputs
from regard.training.output.score_note import score_note

GUESSING = 'always "a" would be right for 75.0% of the validation rows'
NO_BETTER = f"no better than guessing: {GUESSING}, the model is right for"
FOLDS = "--folds 5 (regard.cross_validate) scores every row"
WIDE = Score(1.0, 0.4, 1.0)


def note(of_rows: Any, score: Score, *, name: str = "accuracy", **options: Any) -> str | None:
    """The note for validation rows with these labels."""
    rows = [RowOutputs(ClassifyRecord("text", label=label), ()) for label in of_rows]
    result: Any = SimpleNamespace(scores={name: score})
    return score_note(rows, result, **{"split_off": True, **options})


@pytest.mark.parametrize(
    ("labels", "score", "options", "expected"),
    [
        ("abaa" * 5, Score(0.6, 0.5, 0.95), {}, f"{NO_BETTER} 60.0%"),
        ("abaa" * 5, Score(0.75, 0.7, 0.95), {}, f"{NO_BETTER} 75.0%"),
        (
            "abaa" * 5,
            Score(0.8, 0.7, 0.95),
            {},
            f"not clearly better than guessing: {GUESSING}, the model for 70.0% to 95.0%",
        ),
        ("abaa" * 5, Score(0.9, 0.76, 0.95), {}, None),  # the interval says whether it is better
        ("aa", WIDE, {"split_off": False}, None),
        ("aa", WIDE, {}, f"scores of 2 validation rows say little; {FOLDS}"),
        (
            "aaab",
            Score(0.75, 0.3, 1.0),
            {},
            f"scores of 4 validation rows say little, and are {NO_BETTER} 75.0%; {FOLDS}",
        ),
        ([1.5], Score(0.0, 0.0, 1.0), {"name": "mse", "split_off": False}, None),  # numbers are not guessed
        ([1.5], Score(0.0, 0.0, 1.0), {"name": "mse"}, f"scores of 1 validation row say little; {FOLDS}"),
        ([1.5] * 20, Score(0.0, 0.0, 1.0), {"name": "mse"}, None),
        ("aaa", WIDE, {"labels": "ab"}, f'scores of 3 validation rows say little (none has the label "b"); {FOLDS}'),
        (
            "aaa",
            WIDE,
            {"labels": "abcd"},
            f'scores of 3 validation rows say little (none has the label "b", "c" or "d"); {FOLDS}',
        ),
        (
            "aaa",
            WIDE,
            {"labels": "abcde"},
            f"scores of 3 validation rows say little (none has one of 4 of the 5 labels); {FOLDS}",
        ),
        ([("a", "b")], WIDE, {"name": "f1"}, f"scores of 1 validation row say little; {FOLDS}"),
        ([], WIDE, {"name": "f1"}, None),
    ],
)
def test_notes(labels: Any, score: Score, options: dict[str, Any], expected: str | None) -> None:
    assert note(labels, score, **options) == expected


def test_without_scores_there_is_no_note() -> None:
    assert score_note([], None, split_off=True) is None
