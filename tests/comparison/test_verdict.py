"""The summary of a comparison."""

from __future__ import annotations

from regard.comparison.result import ModelResult, PairResult
from regard.comparison.verdict import cheapest_close, ranked, rule_of_thumb, summary
from regard.metrics.confidence import Score


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
