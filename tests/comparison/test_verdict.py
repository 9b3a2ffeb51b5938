"""Verdicts on pairs of models and on all, in words."""

from __future__ import annotations

import numpy as np
import pytest

from regard.comparison.pairs import compare_tables, too_few
from regard.comparison.result import ModelResult, PairResult
from regard.comparison.verdict import cheapest_close, ranked, rule_of_thumb, summary
from regard.comparison.words import (
    better_sentence,
    cannot_tell_sentence,
    highest,
    is_close,
    listing,
    number,
    points,
    rounded,
    too_many_pairs_sentence,
)
from regard.metrics.confidence import Score, with_ones
from regard.metrics.number_meters import NumberMeter
from regard.metrics.paired.rows import RowScore, RowTable


def test_a_difference_is_in_points() -> None:
    assert better_sentence("minilm", "ngram", "accuracy", Score(0.021, 0.013, 0.029)) == (
        "minilm beats ngram by 2.1 points (1.3 to 2.9)"
    )
    assert (
        better_sentence("b", "a", "accuracy", Score(-0.021, -0.029, -0.013)) == "b beats a by 2.1 points (1.3 to 2.9)"
    )
    assert better_sentence("a", "b", "bleu", Score(2.1, 1.3, 2.9)) == "a beats b by 2.1 points (1.3 to 2.9)"
    assert better_sentence("a", "b", "perplexity", Score(-2.5, -3, -2)) == "a beats b by 2.5 (2 to 3)"
    assert better_sentence("a", "b", "bleu", Score(0.41, 0.38, 0.44)) == "a beats b by 0.41 points (0.38 to 0.44)"


def test_cannot_tell() -> None:
    assert cannot_tell_sentence("a", "b", 500, 1934) == (
        "a and b cannot be told apart with 500 rows: about 1,900 would be needed"
    )
    assert cannot_tell_sentence("a", "b", 500, None).endswith("more rows would not help, since seeds differ as much")
    assert cannot_tell_sentence("a", "b", 500, None, are_equal=True).endswith("their scores are equal")
    assert cannot_tell_sentence("a", "b", 500, 400).endswith("often shown with as many")


def test_a_difference_that_the_number_of_pairs_makes_unsure() -> None:
    assert too_many_pairs_sentence("a", "b", "accuracy", Score(-0.072, -0.106, -0.037), 10, 0.0518) == (
        "a and b cannot be told apart when 10 pairs are tested at once: 7.2 points (3.7 to 10.6), p 0.052 after the "
        "correction; more seeds or fewer models would help"
    )


@pytest.mark.parametrize(("metric", "close", "far"), [("f1", 0.892, 0.88), ("bleu", 29.5, 28.0), ("mse", 0.905, 0.95)])
def test_within_1_point(metric: str, close: float, far: float) -> None:
    best = {"f1": 0.9, "bleu": 30.0, "mse": 0.9}[metric]
    assert is_close(metric, close, best)
    assert not is_close(metric, far, best)


def test_numbers() -> None:
    assert number("accuracy", 0.9123) == "91.2"
    assert number("accuracy", -0.0001) == "0.0"
    assert points("mae", 0.25) == "0.25"
    assert [rounded(value) for value in (7, 94, 1934, 123_456)] == [7, 94, 1900, 120_000]
    assert [highest(name) for name in ("accuracy", "bleu", "perplexity")] == [1.0, 100.0, None]
    assert [listing(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


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


def model(name: str, value: float, latency: float, kind: str = "fine-tuned", error: str | None = None) -> ModelResult:
    scores = {} if error else {"accuracy": Score(value, value - 0.02, value + 0.02)}
    return ModelResult(name, kind, scores=scores, latency_ms=latency, error=error)


def pair(a: str, b: str, better: str | None) -> PairResult:
    return PairResult(a, b, "accuracy", 0.01, 0.0, 0.02, 0.1, 0.1, 0.1, None, None, 900, better, f"{a} and {b} verdict")


MODELS = [
    model("slow", 0.91, 9.0),
    model("ngram", 0.905, 0.1, "baseline"),
    model("fast", 0.8, 0.01),
    model("x", 0, 0, error="no"),
]


def test_the_best_comes_first_and_failed_ones_last() -> None:
    order = ranked([MODELS[3], MODELS[2], MODELS[0], MODELS[1]], "accuracy", higher=True)
    assert [one.name for one in order] == ["slow", "ngram", "fast", "x"]
    assert [one.name for one in ranked(order, "accuracy", higher=False)] == ["fast", "ngram", "slow", "x"]


def test_the_cheapest_model_within_1_point() -> None:
    assert cheapest_close(MODELS, "accuracy").name == "ngram"


def test_the_summary_says_what_cannot_be_told_apart() -> None:
    pairs = [pair("slow", "ngram", None), pair("slow", "fast", "slow"), pair("ngram", "fast", "ngram")]
    assert summary(MODELS, pairs, "accuracy", None) == (
        "slow has the best accuracy (91.0), but cannot be told apart from ngram. "
        "Cheapest model within 1 point of the best: ngram (0.1 ms for one text)."
    )
    pairs = [pair("slow", "ngram", "slow"), pair("slow", "fast", None), pair("ngram", "fast", None)]
    assert summary(MODELS, pairs, "accuracy", None).endswith(
        "Cheapest of those that cannot be told apart from the best: fast (0.01 ms for one text)."
    )
    assert summary(MODELS, pairs, "accuracy", "12 rows").startswith("No verdict: 12 rows. slow has the best")


def test_the_rule_of_thumb_stands_beside_what_was_measured() -> None:
    pairs = [pair("slow", "ngram", "slow")]
    few = rule_of_thumb(1000, 10.0, MODELS, pairs)
    assert few is not None
    assert few.expects == "n-grams"
    assert few.sentence.endswith("measured: slow and ngram verdict, so the rule is wrong here.")
    many = rule_of_thumb(100_000, 10.0, MODELS, pairs)
    assert many is not None
    assert many.expects == "a sequence model"
    assert many.sentence.endswith("so the rule is right here.")
    assert "not checked" in rule_of_thumb(100, 10.0, MODELS[:1], []).sentence
    assert rule_of_thumb(100, 0.0, MODELS, pairs) is None
