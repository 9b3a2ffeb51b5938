"""Verdicts in words."""

from __future__ import annotations

import pytest

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
from regard.metrics.confidence import Score


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
