"""The numbers of each row give the same scores as the meter that added them up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics.label_meters import LabelMeter, MultiLabelMeter
from regard.metrics.language_meters import BidirectionalMeter, MaskedCounts, MaskedMeter, PreferenceMeter
from regard.metrics.number_meters import MeanMeter, NumberMeter, PerplexityMeter
from regard.metrics.paired.rows import HasRows, RowScore, RowTable, group_numbers, group_sums, joined, row_table
from regard.metrics.registry import Metric, register_metric, unregister_metric
from regard.metrics.text_meters import AnswerMeter, EntityMeter, TokenMeter
from regard.metrics.translation import TranslationMeter

WORDS = ["the cat sat on the mat", "a dog ran home", "it rains again in the north", "we saw two small birds"]
TAGS = [["B-PER", "I-PER", "O"], ["O", "B-LOC", "O"], ["B-ORG", "O", "O"], ["O", "O", "O"]]


def meters() -> list[tuple[Any, list[tuple[Any, ...]]]]:
    """An empty meter of every kind, and the arguments of its rows."""
    generator = np.random.default_rng(0)
    labels = [("ab"[generator.integers(2)], "ab"[generator.integers(2)]) for _ in range(40)]
    several = [(["a", "b"], ["a"]), (["c"], ["c", "b"]), ([], ["a"]), (["b"], ["b"])] * 5
    numbers = [(float(x), float(y)) for x, y in generator.normal(size=(30, 2))]
    tags = [(TAGS[generator.integers(4)], TAGS[generator.integers(4)]) for _ in range(30)]
    texts = [(WORDS[generator.integers(4)], WORDS[generator.integers(4)]) for _ in range(20)]
    return [
        (LabelMeter(["a", "b"]), labels),
        (LabelMeter(["a", "b"], main="mcc"), labels),
        (MultiLabelMeter(["a", "b", "c"]), several),
        (NumberMeter(), numbers),
        (MeanMeter("retrieval_accuracy"), [(1.0, 1), (0.0, 1), (1.0, 1)]),
        (PerplexityMeter(), [(3.0, 4, 12, 3), (2.0, 2, 7, 2)]),
        (EntityMeter(), tags),
        (TokenMeter(), tags),
        (AnswerMeter(), [("the cat", ["cat"]), ("dog", ["a big dog"]), ("", []), ("x", [])]),
        (AnswerMeter(), [("the cat", ["cat"], -1.0), ("dog", ["a big dog"], 2.0), ("", [], 3.0), ("x", [], -2.0)]),
        (TranslationMeter(), texts),
        (MaskedMeter(), [(MaskedCounts(2, 3, 4.0, True),), (MaskedCounts(1, 5, 9.0, False),)]),
        (BidirectionalMeter(), [((3.0, 4.0), (2, 3)), ((1.0, 6.0), (2, 2))]),
        (PreferenceMeter(), [(True, "x"), (False, "y"), (True, "x")]),
    ]


@pytest.mark.parametrize("number", range(len(meters())))
def test_sums_of_rows_are_the_scores_of_the_meter(number: int) -> None:
    meter, rows = meters()[number]
    assert issubclass(type(meter), HasRows)
    meter.keep_rows()
    for values in rows:
        meter.add(*values)
    table, scores = row_table(meter), meter.scores()
    assert table.rows == meter.rows == len(rows)
    assert table.main == meter.main
    assert table.score(table.main).higher_is_better == meter.higher_is_better
    for name, value in table.values().items():
        assert value == pytest.approx(scores[name].value, abs=1e-9), name


def test_rows_that_come_in_blocks() -> None:
    generator = np.random.default_rng(1)
    predicted, gold = generator.integers(0, 3, (2, 2500))
    one, other = LabelMeter(["a", "b", "c"]), LabelMeter(["a", "b", "c"])
    for meter in (one, other):
        meter.keep_rows()
    one.add_many(predicted, gold)
    for ours, theirs in zip(predicted.tolist(), gold.tolist(), strict=True):
        other.add(ours, theirs)
    assert np.array_equal(one.row_table().features, other.row_table().features)


def test_many_labels_keep_the_accuracy_only() -> None:
    meter = LabelMeter([str(number) for number in range(300)])
    meter.keep_rows()
    meter.add_many([1, 2, 3], [1, 2, 4])
    assert list(meter.row_table().scores) == ["accuracy"]


def test_registered_metrics_are_kept_too() -> None:
    close = Metric("close", "number", "at most 1 away", score=lambda ours, gold: float(abs(ours - gold) <= 1))
    register_metric(close)
    try:
        meter = NumberMeter()
        meter.keep_rows()
        for values in ((1.0, 1.5), (2.0, 5.0)):
            meter.add(*values)
        assert meter.row_table().values()["close"] == 0.5
    finally:
        unregister_metric(close)


def test_a_meter_without_rows() -> None:
    with pytest.raises(InputError, match="keeps no rows"):
        row_table(object())


def test_an_unknown_score() -> None:
    with pytest.raises(InputError, match='Did you mean "accuracy"'):
        RowTable(np.ones((2, 2)), {"accuracy": RowScore((0, 1))}).score("acuracy")


def test_tables_side_by_side() -> None:
    first = RowTable(np.array([[1.0, 1.0], [0.0, 1.0]]), {"a": RowScore((0, 1))})
    second = RowTable(np.array([[3.0, 2.0], [5.0, 2.0]]), {"b": RowScore((0, 1))})
    short = RowTable(np.ones((1, 2)), {"c": RowScore((0, 1))})
    assert joined([first, second, short]).values() == {"a": 0.5, "b": 2.0}


def test_groups_are_added_up() -> None:
    numbers = group_numbers(["x", "y", "x"])
    assert numbers.tolist() == [0, 1, 0]
    assert group_sums(np.array([[1.0], [2.0], [3.0]]), numbers).tolist() == [[4.0], [2.0]]
    with pytest.raises(InputError, match="2 groups were given for 3 rows"):
        group_sums(np.ones((3, 1)), [0, 1])


@pytest.mark.parametrize("number", range(len(meters())))
def test_every_value_lies_within_its_limits(number: int) -> None:
    meter, rows = meters()[number]
    meter.keep_rows()
    for row in rows:
        meter.add(*row)
    table = row_table(meter)
    for name, score in table.scores.items():
        assert score.limits[0] <= table.value(name) <= score.limits[1]
