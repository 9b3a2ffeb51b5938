"""Meters give the scores of the pure functions, with intervals, in flat memory."""

from __future__ import annotations

import inspect
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]
from sklearn import metrics as oracle

from regard.errors import InputError
from regard.metrics import meter as meters
from regard.metrics import scores
from regard.metrics.answers import answer_scores
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


def test_language() -> None:
    meter = PerplexityMeter()
    for count in range(1, 60):
        meter.add(count * math.log(7 if count % 2 else 5), count, 2 * count, 3 * count)
    result = meter.scores()
    assert list(result) == ["perplexity", "nll", "word_perplexity", "bits_per_character"]
    assert result["word_perplexity"].value == pytest.approx(math.exp(result["nll"].value / 3))
    assert 5 < result["perplexity"].low < result["perplexity"].value < result["perplexity"].high < 7
    assert result["perplexity"].value == pytest.approx(math.exp(result["nll"].value))
    assert result["bits_per_character"].value == pytest.approx(result["nll"].value / 2 / math.log(2))
    assert not meter.higher_is_better
    meter.add(1e9, 1)
    assert meter.scores()["perplexity"].value == math.inf


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_numbers(shift: float) -> None:
    random = np.random.default_rng(2)
    gold = random.normal(size=2500)
    predicted = gold + 0.5 * random.normal(size=2500)
    meter = NumberMeter()
    meter.add_many(predicted[:2000] + shift, gold[:2000] + shift)
    for ours, theirs in zip(predicted[2000:], gold[2000:], strict=True):
        meter.add(ours + shift, theirs + shift)
    result = meter.scores()
    assert list(result) == ["pearson", "spearman", "mse", "mae", "r2"]
    theirs = stats.pearsonr(predicted, gold)
    expected = theirs.confidence_interval()
    assert (result["pearson"].value, result["pearson"].low, result["pearson"].high) == pytest.approx(
        (theirs[0], expected.low, expected.high), abs=2e-3
    )
    assert result["spearman"].value == pytest.approx(stats.spearmanr(predicted, gold)[0], abs=1e-6)
    assert result["mse"].value == pytest.approx(oracle.mean_squared_error(gold, predicted))
    assert result["r2"].value == pytest.approx(oracle.r2_score(gold, predicted))
    half = 1.96 * np.square(predicted - gold).std() / 50
    assert result["mse"].high - result["mse"].value == pytest.approx(half, rel=0.15)


def test_constant_numbers_have_no_correlation() -> None:
    meter = NumberMeter()
    meter.add_many([0.1] * 5, [0.1] * 5)
    assert [score.value for score in meter.scores().values()] == [0, 0, 0, 0, 1]


def test_few_rows_that_are_all_right_leave_room_for_errors() -> None:
    meter = LabelMeter(["a", "b"])
    meter.add_many([0, 1] * 6, [0, 1] * 6)
    result = meter.scores()
    low = result["accuracy"].low
    assert low == pytest.approx(0.7575, abs=1e-4)
    assert {name: (score.value, score.high) for name, score in result.items()} == dict.fromkeys(result, (1.0, 1.0))
    assert [result[name].low for name in ("macro_f1", "f1", "mcc")] == pytest.approx([low, low, 2 * low - 1])


def test_rare_labels_that_are_all_right_are_less_certain() -> None:
    """With the same accuracy, errors of frequent labels take more of the precision of a rare one."""
    meter = LabelMeter(["a", "b", "never"])
    meter.add_many([0] * 95 + [1] * 5, [0] * 95 + [1] * 5)
    result = meter.scores()
    assert result["macro_f1"].low < result["accuracy"].low < 1
    one = LabelMeter(["a", "b"])
    one.add_many([0] * 10, [0] * 10)
    assert one.scores()["macro_f1"].low == 1.0  # the only label: nothing is known of the other


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_labels(rows: list[tuple[int, int]]) -> None:
    three, two = LabelMeter(["a", "b", "c"], main="macro_f1"), LabelMeter(["a", "b"])
    three.add_many(*np.array(rows).T)
    predicted, gold = np.minimum(np.array(rows), 1).T
    for ours, theirs in zip(predicted, gold, strict=True):
        two.add(int(ours), "ab"[theirs])
    result = three.scores()
    assert list(result) == ["macro_f1", "accuracy"]
    macro = oracle.f1_score([gold for _, gold in rows], [ours for ours, _ in rows], average="macro", zero_division=0)
    assert result["macro_f1"].value == pytest.approx(macro)
    result = two.scores()
    assert list(result) == ["accuracy", "macro_f1", "f1", "mcc"]
    assert result["f1"].value == pytest.approx(oracle.f1_score(gold, predicted, zero_division=0))
    assert result["accuracy"].value == pytest.approx((gold == predicted).mean())


def test_intervals_of_labels_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    chances = np.array([[0.4, 0.1, 0.05], [0.05, 0.2, 0.02], [0.03, 0.05, 0.1]])
    truth = scores.LabelCounts.of_table(chances).macro().f1
    hits = 0
    for _ in range(100):
        cells = random.choice(9, 400, p=chances.ravel())
        meter = LabelMeter(["a", "b", "c"])
        meter.add_many(cells % 3, cells // 3)
        result = meter.scores()["macro_f1"]
        hits += result.low <= truth <= result.high
    assert 89 <= hits <= 100


def test_sets_of_labels() -> None:
    random = np.random.default_rng(1)
    gold = random.random((3000, 40)) < 0.05
    predicted = gold ^ (random.random(gold.shape) < 0.01)
    names = [f"label{number}" for number in range(40)]
    meter, one_by_one = MultiLabelMeter(names), MultiLabelMeter(names)
    meter.add_many(predicted, gold)
    for ours, theirs in zip(predicted, gold, strict=True):
        one_by_one.add([names[number] for number in np.flatnonzero(ours)], np.flatnonzero(theirs).tolist())
    result = meter.scores()
    assert one_by_one.scores() == result
    for name in ("micro", "macro"):
        expected = oracle.f1_score(gold.astype(int), predicted.astype(int), average=name, zero_division=0)
        assert result[f"{name}_f1"].value == pytest.approx(expected)
        assert 0.003 < result[f"{name}_f1"].high - result[f"{name}_f1"].low < 0.05
    assert result["exact"].value == pytest.approx(scores.subset_accuracy(predicted, gold))
    assert meter.counts().f1.shape == (40,)
    none = MultiLabelMeter(names)
    none.add([], [])
    assert [score.value for score in none.scores().values()] == [0, 0, 1]


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
