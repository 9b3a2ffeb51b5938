"""Meters give the scores of the pure functions, with intervals, in flat memory."""

from __future__ import annotations

import inspect
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics import meter as meters
from regard.metrics.meter import (
    AnswerMeter,
    EntityMeter,
    LabelMeter,
    MeanMeter,
    Meter,
    MultiLabelMeter,
    NumberMeter,
    PerplexityMeter,
    TokenMeter,
)

RECORDS: dict[str, tuple[Callable[[], Meter], list[tuple[Any, ...]]]] = {
    "label": (lambda: LabelMeter(["no", "yes"]), [("no", "no"), ("yes", 0), (1, "yes")]),
    "multi": (lambda: MultiLabelMeter(["a", "b", "c"]), [(["a"], ["a", "b"]), ([], [2]), (["c"], ["c"])]),
    "number": (NumberMeter, [(1.0, 1.5), (2, 2), (0.5, 3)]),
    "entity": (EntityMeter, [(["B-A", "I-A"], ["B-A", "I-A"]), (["I-A"], ["B-A"]), (["O"], ["B-B"])]),
    "token": (TokenMeter, [(["X", "Y"], ["X", "X"]), (["X"], ["X"])]),
    "answer": (AnswerMeter, [("cat", ["the cat"]), ("a dog", ["dog house"]), ("", [])]),
    "mean": (lambda: MeanMeter("masked_accuracy"), [(3, 4), (1, 2), (0, 0)]),
    "nll": (PerplexityMeter, [(3.5, 4, 9), (1.0, 2, 5)]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_contract_of_every_meter(name: str) -> None:
    make, records = RECORDS[name]
    meter = make()
    with pytest.raises(InputError, match="No record was added"):
        meter.scores()
    for record in records:
        meter.add(*record)
    first = meter.scores()
    assert meter.rows == len(records)
    assert next(iter(first)) == meter.main
    assert isinstance(meter.higher_is_better, bool)
    for score in first.values():
        assert math.isfinite(score.value)
        assert score.low <= score.value <= score.high
    assert meter.scores() == first, "asking changes nothing"
    again = make()
    for record in records:
        again.add(*record)
        again.scores()
    assert again.scores() == first, "the same records, the same intervals"


def test_every_meter_is_in_the_battery() -> None:
    named = {name for name, part in vars(meters).items() if inspect.isclass(part) and name.endswith("Meter")}
    assert {type(make()).__name__ for make, _ in RECORDS.values()} == named - {"Meter"}


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: LabelMeter(["no", "yes"]).add("yse", "yes"), 'Did you mean "yes"'),
        (lambda: LabelMeter(["no", "yes"]).add(2, 0), "Label 2 is not in 0 … 1"),
        (lambda: LabelMeter(["no", "no"]), "each once"),
        (lambda: LabelMeter(["a", "b", "c"], main="mcc"), "not a score of this meter"),
        (lambda: MultiLabelMeter(["a"]).add("a", ["a"]), "expected a list of labels"),
        (
            lambda: MultiLabelMeter(["a"]).add_many(np.ones((1, 2), bool), np.ones((1, 2), bool)),
            r"expected \(rows, 1\)",
        ),
        (lambda: NumberMeter().add(math.nan, 1), "Row 1 has nan predicted"),
        (lambda: NumberMeter().add_many([1, math.inf], [1, 2]), "all of them finite"),
        (lambda: EntityMeter().add(["O"], ["O", "O"]), "1 predicted tags for 2"),
        (lambda: AnswerMeter().add("cat", ["cat"], math.nan), "no-answer score nan"),
        (lambda: MeanMeter().add(math.nan), "the sum nan"),
        (lambda: PerplexityMeter().add(1.0, -1), "over -1 tokens"),
    ],
)
def test_words_about_what_cannot_be_added(act: Callable[[], None], words: str) -> None:
    with pytest.raises(InputError, match=words):
        act()


def peak(act: Callable[[int], object], rows: int) -> int:
    tracemalloc.start()
    act(rows)
    _, limit = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return limit


def label_rows(rows: int) -> object:
    meter = LabelMeter(["a", "b", "c"])
    for number in range(rows):
        meter.add(number % 3, number % 2)
    return meter.scores()


def mean_rows(rows: int) -> object:
    meter = MeanMeter()
    for number in range(rows):
        meter.add(number)
    return meter.scores()


def test_memory_is_flat_in_rows() -> None:
    label_rows(10), mean_rows(10)  # what is made once
    assert peak(label_rows, 1_000_000) < 1.1 * peak(label_rows, 10_000) + 10_000
    assert peak(mean_rows, 100_000) < 1.1 * peak(mean_rows, 10_000) + 10_000
