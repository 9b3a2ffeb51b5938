"""The page of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.report.test_page import Checker, headings

from regard.comparison.result import Comparison, LearningCurve, ModelResult, PairResult
from regard.metrics.confidence import Score
from regard.report.comparison_page import comparison_page
from regard.report.plots import log_ticks

BAD = "<b>ngram</b>"
GOOD = ModelResult("minilm", "fine-tuned", {"accuracy": Score(0.9, 0.88, 0.92)}, parameters=22_000_000, latency_ms=12.0)
FAST = ModelResult(BAD, "baseline", {"accuracy": Score(0.85, 0.83, 0.87)}, latency_ms=0.2, memory_bytes=10**8)
PAIR = PairResult(
    "minilm", BAD, "accuracy", 0.05, 0.03, 0.07, 0.001, 0.002, 0.001, None, None, 300, "minilm", "minilm beats <b>"
)
RESULT = Comparison(
    "classify",
    "accuracy",
    1000,
    5000,
    500,
    (GOOD, FAST, ModelResult("broken", "loaded", error="no such <folder>")),
    (PAIR,),
    "minilm beats ngram by 5 points",
    "minilm",
    BAD,
    notes=("a <note>",),
    seconds=90.0,
)


def checked(comparison: Comparison) -> str:
    page = comparison_page(comparison, name="which <model>")
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert "<b>ngram" not in page
    assert "<folder>" not in page
    return page


def test_a_comparison_has_its_verdict_scores_costs_and_pairs() -> None:
    page = checked(RESULT)
    assert headings(page) == ["Verdict", "Scores", "Score and speed", "Costs", "Every pair", "Notes"]
    for text in (
        "minilm beats ngram by 5 points",
        "+0.0500",
        "22,000,000",
        "no such &lt;folder&gt;",
        "1.5 min",
        "models, 1 seed of each",
    ):
        assert text in page


def test_what_is_not_there_is_left_out() -> None:
    scores = (Score(0.7, 0.6, 0.8), Score(0.8, 0.7, 0.9))
    curve = LearningCurve("minilm", (100, 200), scores, {}, Score(1, 1, 1), "it grows")
    one = replace(RESULT, models=(GOOD,), pairs=(), notes=(), curves=(curve,), best=None, cheapest=None)
    page = checked(one)
    assert headings(page) == ["Verdict", "Scores", "Learning curves", "Costs"]
    assert "Dashed" not in page
    more = replace(one, curves=(replace(curve, predicted={400: Score(0.9, 0.85, 0.95), 800: Score(0.92, 0.86, 0.97)}),))
    page = checked(more)
    assert "Dashed: expected with more rows" in page
    assert page.count('class="band c0"') == page.count('class="line c0 dashed"') == 1
    assert "minilm, expected 0.92 at 800" in page


def test_ticks_of_a_logarithmic_axis_are_round_numbers() -> None:
    assert log_ticks(1.3, 25) == pytest.approx([2, 5, 10, 20])
    assert log_ticks(0.06, 250) == pytest.approx([0.1, 1, 10, 100])
