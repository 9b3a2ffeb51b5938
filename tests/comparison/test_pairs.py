"""All pairs of models."""

from __future__ import annotations

import numpy as np
import pytest

from regard.comparison.pairs import compare_tables, too_few
from regard.metrics.confidence import with_ones
from regard.metrics.number_meters import NumberMeter
from regard.metrics.paired.rows import RowScore, RowTable


def right(chance: float, seed: int, rows: int = 600) -> RowTable:
    values = np.random.default_rng(seed).random(rows) < chance
    return RowTable(with_ones(values.astype(float)), {"accuracy": RowScore((0, 1))})


def test_verdicts_on_three_models() -> None:
    tables = {"good": [right(0.9, 0)], "also": [right(0.9, 1)], "bad": [right(0.7, 2)]}
    result = compare_tables(tables, "accuracy", resamples=2000)
    assert [(pair.a, pair.b, pair.better) for pair in result.pairs] == [
        ("good", "also", None),
        ("good", "bad", "good"),
        ("also", "bad", "also"),
    ]
    for pair in result.pairs:
        assert pair.p_holm >= pair.p
        assert pair.low <= pair.difference <= pair.high
    assert result.scores["good"].value == tables["good"][0].value("accuracy")
    assert result.reason is None


def test_lower_may_be_better() -> None:
    gold = np.random.default_rng(0).normal(size=200)
    tables = {}
    for name, noise in (("exact", 0.1), ("loose", 1.0)):
        meter = NumberMeter()
        meter.keep_rows()
        meter.add_many(gold + noise * np.random.default_rng(1).normal(size=200), gold)
        tables[name] = [meter.row_table()]
    (pair,) = compare_tables(tables, "mse", resamples=1000).pairs
    assert pair.difference < 0
    assert pair.better == "exact"
    assert pair.verdict.startswith("exact beats loose by ")


def test_seeds_widen_the_interval() -> None:
    spread = [right(chance, seed) for seed, chance in enumerate((0.7, 0.8, 0.9))]
    result = compare_tables({"many": spread, "one": [right(0.8, 9)]}, "accuracy", resamples=2000)
    one, many = result.scores["one"], result.scores["many"]
    assert many.high - many.low > 2 * (one.high - one.low)
    assert result.pairs[0].p_randomization is None


def test_two_different_seeds_give_no_impossible_score() -> None:
    spread = [right(chance, seed) for seed, chance in enumerate((0.6, 0.95))]
    score = compare_tables({"two": spread, "one": [right(0.8, 9)]}, "accuracy", resamples=2000).scores["two"]
    assert (score.low, score.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("units", "rows", "words"),
    [
        (30, 30, None),
        (29, 29, "29 rows, expected at least 30"),
        (5, 50, "5 groups of rows, expected"),
        (1, 50, "one group"),
    ],
)
def test_too_few_rows(units: int, rows: int, words: str | None) -> None:
    reason = too_few(units, rows)
    assert reason is None if words is None else words in (reason or "")
