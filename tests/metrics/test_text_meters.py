"""Meters of entities, tokens and answers."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics.answers import answer_scores
from regard.metrics.meter import (
    AnswerMeter,
    EntityMeter,
    TokenMeter,
)


def test_entities_of_both_kinds() -> None:
    meter = EntityMeter()
    for _ in range(30):
        meter.add(["I-PER", "O", "B-LOC"], ["B-PER", "O", "B-LOC"])
        meter.add(["O", "O"], ["O", "B-LOC"])
    result = meter.scores()
    assert result["f1"].value == pytest.approx(2 * 2 / (2 + 3))
    assert result["f1_strict"].value == pytest.approx(2 * 1 / (1 + 3))
    assert (result["precision"].value, result["recall"].value) == pytest.approx((1, 2 / 3))
    assert meter.per_type()["LOC"] == pytest.approx({"precision": 1, "recall": 0.5, "f1": 2 / 3, "support": 60})
    assert result["recall"].low < 0.66 < 0.68 < result["recall"].high


def test_the_interval_of_tokens_knows_their_records() -> None:
    meter = TokenMeter()
    for number in range(100):
        meter.add(["X"] * 50, ["X" if number % 2 else "Y"] * 50)
    result = meter.scores()["accuracy"]
    assert result.value == 0.5
    assert result.high - result.low == pytest.approx(2 * 1.96 * 0.05, rel=0.15), "100 records, not 5,000 words"


def test_answers_with_unanswerable_questions() -> None:
    records: list[tuple[str, list[str], float]] = [
        ("cat", ["cat"], -2.0),
        ("dog", ["dog house"], -1.0),
        ("bird", [], 1.0),
        ("fish", [], -1.5),
        ("ant", ["ant"], 0.5),
    ]
    meter = AnswerMeter()
    for record in records:
        meter.add(*record)
    result = meter.scores()
    values = {name: score.value for name, score in result.items()}
    assert values == pytest.approx(
        {
            "f1": (1 + 2 / 3 + 1 + 0 + 0) / 5,
            "exact": 2 / 5,
            "has_answer_f1": (1 + 2 / 3) / 3,
            "has_answer_exact": 1 / 3,
            "no_answer_exact": 1 / 2,
            "best_f1": (1 + 2 / 3 + 1 + 1) / 5,
            "best_exact": 3 / 5,
        }
    )
    assert meter.best()["f1"] == pytest.approx((11 / 15, 0.5))
    with pytest.raises(InputError, match="all or none"):
        meter.add("cat", ["cat"])
    assert meter.rows == 5


def test_answering_nothing_is_a_threshold_below_all() -> None:
    meter = AnswerMeter()
    meter.add("cat", [], -3.0)
    assert meter.best()["f1"][0] == 1
    assert meter.best()["f1"][1] < -3
    assert "has_answer_f1" not in meter.scores()


def test_answers_without() -> None:
    meter = AnswerMeter()
    rows = [("a black cat", ["cat"]), ("dog", ["dog", "hound"])] * 20
    for row in rows:
        meter.add(*row)
    result = meter.scores()
    assert list(result) == ["f1", "exact"]
    assert result["f1"].value == pytest.approx(np.mean([answer_scores(*row)[1] for row in rows]))
    assert result["exact"].value == 0.5
