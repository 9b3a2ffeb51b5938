"""Comparisons as tables in a terminal."""

from __future__ import annotations

import pytest

from regard.cli.comparison_tables import print_comparison
from regard.comparison.result import Comparison, LearningCurve, ModelResult, PairResult, RuleOfThumb
from regard.metrics.confidence import Score

SCORE = Score(0.5, 0.4, 0.6)


def test_models_pairs_rule_and_curves(capsys: pytest.CaptureFixture[str]) -> None:
    good = ModelResult("good", "fine-tuned", {"f1": SCORE}, (0.5,), 1000, 150.0, 2.5, 400.0, 10**9, 4000)
    pair = PairResult("good", "bad", "f1", 0.1, 0.0, 0.2, 0.1, 0.1, 0.1, None, None, 900, "good", "good beats bad")
    curve = LearningCurve("good", (10, 20), (SCORE, SCORE), {40: SCORE}, SCORE, "more rows help")
    result = Comparison(
        "tag", "f1", 50, 100, 10, (good, ModelResult("bad", "baseline", error="it broke")), (pair,), "good is best.",
        "good", "good", RuleOfThumb(1, 1.0, 1.0, "n-grams", "the rule."), (curve,), notes=("a note",),
    )  # fmt: skip
    print_comparison(result)
    shown = capsys.readouterr().out
    for part in ("0.5000 (0.4000 to 0.6000)", "2.5 min", "2.5 ms", "1.0 GB", "4.0 kB", "failed", "bad: it broke"):
        assert part in shown
    for line in (
        "good beats bad.",
        "good is best.",
        "the rule.",
        "more rows help.",
        "Note: a note.",
        "learning curve of good",
    ):
        assert line in shown
