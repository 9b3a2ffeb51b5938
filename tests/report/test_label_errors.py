"""Likely label errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.report.label_errors import rank_label_errors


def predictions(rows: int = 2000, classes: int = 3, *, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities of a good model, and the true classes."""
    random = np.random.default_rng(seed)
    truth = random.integers(classes, size=rows)
    logits = random.normal(size=(rows, classes)) + 4 * np.eye(classes)[truth]
    chances = np.exp(logits)
    return chances / chances.sum(1, keepdims=True), truth


def test_labels_that_were_changed_come_first() -> None:
    chances, truth = predictions()
    labels = truth.copy()
    flipped = np.random.default_rng(1).choice(len(labels), 60, replace=False)
    labels[flipped] = (labels[flipped] + 1) % 3
    errors = rank_label_errors(chances, labels)
    first = set(errors.order[: len(labels) // 20].tolist())
    assert len(first & set(flipped.tolist())) >= 0.9 * len(flipped)
    assert 40 <= errors.flagged <= 120
    right = [errors.suggested[row] == truth[row] for row in flipped]
    assert np.mean(right) > 0.9


def test_every_row_is_listed_once_and_flagged_rows_contradict_their_label() -> None:
    chances, labels = predictions()
    errors = rank_label_errors(chances, labels)
    assert sorted(errors.order.tolist()) == list(range(len(labels)))
    for row in errors.order[: errors.flagged].tolist():
        assert chances[row, labels[row]] < chances[row, errors.suggested[row]]


def test_small_and_wrong_tables() -> None:
    assert rank_label_errors(np.zeros((0, 2)), []).flagged == 0
    assert rank_label_errors(np.ones((3, 1)), [0, 0, 0]).flagged == 0
    assert rank_label_errors(np.array([[0.1, 0.9]]), [0]).order.tolist() == [0]
    with pytest.raises(InputError, match=r"\(rows, classes\)"):
        rank_label_errors(np.ones((3, 2)), [0, 1])
