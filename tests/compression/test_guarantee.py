"""The test against a floor is right about models whose difference is known."""

from __future__ import annotations

import numpy as np
import pytest

from regard.compression.guarantee import check_floor, check_rows, compare_to_floor, rows_for_floor
from regard.errors import InputError
from regard.metrics.paired.rows import RowScore, RowTable


def table(right: np.ndarray) -> RowTable:
    features = np.stack([right.astype(float), np.ones(len(right))], 1)
    return RowTable(features, {"accuracy": RowScore((0, 1), lambda sums: sums[0] / sums[1])})


def test_equal_answers_hold_any_floor() -> None:
    right = np.arange(200) % 10 > 0
    test = compare_to_floor(table(right), table(right), "accuracy", 0.99)
    assert test.holds
    assert test.difference.value == test.difference.low == test.difference.high == 0
    assert test.margin.value == pytest.approx(0.009)


def test_a_loss_beyond_the_floor_is_noticed() -> None:
    teacher, candidate = np.ones(2000, bool), np.ones(2000, bool)
    candidate[:60] = False
    test = compare_to_floor(table(candidate), table(teacher), "accuracy", 0.99)
    assert not test.holds
    assert test.rows_needed is None
    assert test.difference.value == pytest.approx(-0.03)


def test_too_few_rows_are_counted() -> None:
    teacher, candidate = np.ones(200, bool), np.ones(200, bool)
    candidate[0] = False
    test = compare_to_floor(table(candidate), table(teacher), "accuracy", 0.99)
    assert not test.holds
    assert test.rows_needed is not None
    assert test.rows_needed > 200


def test_false_claims_are_rare() -> None:
    """A candidate that is exactly at the floor is accepted in about 2.5 % of the cases."""
    generator = np.random.default_rng(0)
    accepted = 0
    for seed in range(80):
        teacher = generator.random(1000) < 0.9
        flips = generator.random(1000)
        candidate = np.where(teacher, flips > 0.05, flips < 0.36)  # 0.9 * 0.95 + 0.1 * 0.36 = 0.99 * 0.9
        accepted += compare_to_floor(table(candidate), table(teacher), "accuracy", 0.99, seed=seed).holds
    assert accepted <= 6


@pytest.mark.parametrize("floor", [0, 1, 1.5, -0.1])
def test_floors_are_fractions(floor: float) -> None:
    with pytest.raises(InputError, match=r"above 0 and below 1: 0\.99"):
        check_floor(floor)


def test_small_test_sets_are_refused_with_a_number() -> None:
    check_rows(30, 0.99)
    with pytest.raises(InputError, match=f"there are 12 test rows.*about {rows_for_floor(0.99):,} for this floor"):
        check_rows(12, 0.99)
    assert rows_for_floor(0.99) > rows_for_floor(0.95)


def test_a_low_floor_asks_for_no_fewer_rows_than_the_least() -> None:
    with pytest.raises(InputError, match=r"expected at least 30\. Give more rows"):
        check_rows(12, 0.8)
