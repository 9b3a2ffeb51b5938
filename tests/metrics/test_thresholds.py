"""Thresholds of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics.thresholds import _best_thresholds, _separate, micro_f1, tune_thresholds


def rows(count: int, shifts: Any, *, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities whose logits are shifted by another number for each label, and labels."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(count, len(shifts))) * 3 - 1
    gold = random.random(logits.shape) < 1 / (1 + np.exp(-logits))
    return 1 / (1 + np.exp(-(logits + shifts))), gold


def test_the_thresholds_of_two_labels_are_the_best_of_all() -> None:
    chances, gold = rows(30, [-1.0, 2.0])
    best = _best_thresholds(chances, gold)
    cuts = [np.unique(np.concatenate([[0], column])) for column in chances.T]
    every = [micro_f1(chances > [first, second], gold) for first in cuts[0] for second in cuts[1]]
    assert micro_f1(chances > best, gold) == pytest.approx(max(every))


def test_thresholds_raise_micro_f1_on_rows_that_they_were_not_tuned_on() -> None:
    shifts = [-3.0, -2.0, -1.0, 0.0, 2.0]
    chances, gold = rows(1500, shifts)
    thresholds = tune_thresholds(chances, gold)
    test, test_gold = rows(3000, shifts, seed=1)
    assert micro_f1(test > thresholds, test_gold) > micro_f1(test > 0.5, test_gold) + 0.05
    assert thresholds[0] < 0.2 < thresholds[4]


def test_half_stays_where_nothing_is_better() -> None:
    chances = np.where(np.random.default_rng(0).random((200, 3)) < 0.3, 0.9, 0.1)
    assert tune_thresholds(chances, chances > 0.5).tolist() == [0.5, 0.5, 0.5]
    assert tune_thresholds(np.full((40, 2), 0.2), np.zeros((40, 2))).tolist() == [0.5, 0.5]


def test_equal_probabilities_are_on_one_side() -> None:
    chances = np.array([[0.7]] * 5 + [[0.3]] * 5)
    gold = np.array([[True]] * 4 + [[False]] * 6)
    assert _best_thresholds(chances, gold).tolist() == [0.5]


def test_a_rare_label_shares_the_threshold_of_all() -> None:
    chances, gold = rows(300, [-2.0, -2.0])
    gold[:, 1] = False
    gold[0, 1] = True
    separate = _separate(chances, gold)
    assert separate[1] != _best_thresholds(chances, gold)[1]


def test_tables_of_other_shapes_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(rows, labels\) twice"):
        tune_thresholds(np.zeros((3, 2)), np.zeros((3, 1)))
