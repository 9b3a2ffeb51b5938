"""Meters give the scores of the pure functions, with intervals, in flat memory and little time."""

from __future__ import annotations

import inspect
import math
import time
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


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_labels(rows: list[tuple[int, int]]) -> None:
    three, two = LabelMeter(["a", "b", "c"], main="macro_f1"), LabelMeter(["a", "b"])
    three.add_many(*np.array(rows).T)
    predicted, gold = np.minimum(np.array(rows), 1).T
    for ours, theirs in zip(predicted, gold, strict=True):
        two.add(int(ours), "ab"[theirs])
    found = three.scores()
    assert list(found) == ["macro_f1", "accuracy"]
    macro = oracle.f1_score([gold for _, gold in rows], [ours for ours, _ in rows], average="macro", zero_division=0)
    assert found["macro_f1"].value == pytest.approx(macro)
    found = two.scores()
    assert list(found) == ["accuracy", "macro_f1", "f1", "mcc"]
    assert found["f1"].value == pytest.approx(oracle.f1_score(gold, predicted, zero_division=0))
    assert found["accuracy"].value == pytest.approx((gold == predicted).mean())


def test_intervals_of_labels_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    chances = np.array([[0.4, 0.1, 0.05], [0.05, 0.2, 0.02], [0.03, 0.05, 0.1]])
    truth = scores.LabelCounts.of_table(chances).macro().f1
    hits = 0
    for _ in range(100):
        cells = random.choice(9, 400, p=chances.ravel())
        meter = LabelMeter(["a", "b", "c"])
        meter.add_many(cells % 3, cells // 3)
        found = meter.scores()["macro_f1"]
        hits += found.low <= truth <= found.high
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
    found = meter.scores()
    assert one_by_one.scores() == found
    for name in ("micro", "macro"):
        expected = oracle.f1_score(gold.astype(int), predicted.astype(int), average=name, zero_division=0)
        assert found[f"{name}_f1"].value == pytest.approx(expected)
        assert 0.003 < found[f"{name}_f1"].high - found[f"{name}_f1"].low < 0.05
    assert found["exact"].value == pytest.approx(scores.subset_accuracy(predicted, gold))
    assert meter.counts().f1.shape == (40,)
    none = MultiLabelMeter(names)
    none.add([], [])
    assert [score.value for score in none.scores().values()] == [0, 0, 1]


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_numbers(shift: float) -> None:
    random = np.random.default_rng(2)
    gold = random.normal(size=2500)
    predicted = gold + 0.5 * random.normal(size=2500)
    meter = NumberMeter()
    meter.add_many(predicted[:2000] + shift, gold[:2000] + shift)
    for ours, theirs in zip(predicted[2000:], gold[2000:], strict=True):
        meter.add(ours + shift, theirs + shift)
    found = meter.scores()
    assert list(found) == ["pearson", "spearman", "mse", "mae", "r2"]
    theirs = stats.pearsonr(predicted, gold)
    expected = theirs.confidence_interval()
    assert (found["pearson"].value, found["pearson"].low, found["pearson"].high) == pytest.approx(
        (theirs[0], expected.low, expected.high), abs=2e-3
    )
    assert found["spearman"].value == pytest.approx(stats.spearmanr(predicted, gold)[0], abs=1e-6)
    assert found["mse"].value == pytest.approx(oracle.mean_squared_error(gold, predicted))
    assert found["r2"].value == pytest.approx(oracle.r2_score(gold, predicted))
    half = 1.96 * np.square(predicted - gold).std() / 50
    assert found["mse"].high - found["mse"].value == pytest.approx(half, rel=0.15)


def test_constant_numbers_have_no_correlation() -> None:
    meter = NumberMeter()
    meter.add_many([0.1] * 5, [0.1] * 5)
    assert [score.value for score in meter.scores().values()] == [0, 0, 0, 0, 1]


def test_entities_of_both_kinds() -> None:
    meter = EntityMeter()
    for _ in range(30):
        meter.add(["I-PER", "O", "B-LOC"], ["B-PER", "O", "B-LOC"])
        meter.add(["O", "O"], ["O", "B-LOC"])
    found = meter.scores()
    assert found["f1"].value == pytest.approx(2 * 2 / (2 + 3))
    assert found["f1_strict"].value == pytest.approx(2 * 1 / (1 + 3))
    assert (found["precision"].value, found["recall"].value) == pytest.approx((1, 2 / 3))
    assert meter.per_type()["LOC"] == pytest.approx({"precision": 1, "recall": 0.5, "f1": 2 / 3, "support": 60})
    assert found["recall"].low < 0.66 < 0.68 < found["recall"].high


def test_the_interval_of_tokens_knows_their_records() -> None:
    meter = TokenMeter()
    for number in range(100):
        meter.add(["X"] * 50, ["X" if number % 2 else "Y"] * 50)
    found = meter.scores()["accuracy"]
    assert found.value == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.05, rel=0.15), "100 records, not 5,000 words"


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
    found = meter.scores()
    values = {name: score.value for name, score in found.items()}
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
    found = meter.scores()
    assert list(found) == ["f1", "exact"]
    assert found["f1"].value == pytest.approx(np.mean([answer_scores(*row)[1] for row in rows]))
    assert found["exact"].value == 0.5


def test_language() -> None:
    meter = PerplexityMeter()
    for count in range(1, 60):
        meter.add(count * math.log(7 if count % 2 else 5), count, 2 * count, 3 * count)
    found = meter.scores()
    assert list(found) == ["perplexity", "nll", "word_perplexity", "bits_per_character"]
    assert found["word_perplexity"].value == pytest.approx(math.exp(found["nll"].value / 3))
    assert 5 < found["perplexity"].low < found["perplexity"].value < found["perplexity"].high < 7
    assert found["perplexity"].value == pytest.approx(math.exp(found["nll"].value))
    assert found["bits_per_character"].value == pytest.approx(found["nll"].value / 2 / math.log(2))
    assert not meter.higher_is_better
    meter.add(1e9, 1)
    assert meter.scores()["perplexity"].value == math.inf


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
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["label", "mean", "token", "answer", "number"])
def test_a_row_takes_microseconds(name: str) -> None:
    """The bound is several times what it takes alone, since tests share the machine."""
    make, records = RECORDS[name]
    meter, rows = make(), 20_480
    start = time.perf_counter()
    for number in range(rows):
        meter.add(*records[number % len(records)])
    meter.scores()
    assert (time.perf_counter() - start) / rows < 200e-6
