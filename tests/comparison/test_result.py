"""Results as JSON and back."""

from __future__ import annotations

import json

from regard.comparison.result import Comparison, LearningCurve, ModelResult, PairResult, RuleOfThumb
from regard.metrics.confidence import Score

SCORE = Score(0.5, 0.4, 0.6)


def test_a_comparison_is_what_its_json_says() -> None:
    model = ModelResult("a", "loaded", {"accuracy": SCORE}, seeds=(0.5,))
    comparison = Comparison(
        task="classify",
        metric="accuracy",
        rows=50,
        train_rows=100,
        dev_rows=10,
        models=(model, ModelResult("b", "baseline", error="failed")),
        pairs=(PairResult("a", "b", "accuracy", 0.1, 0.0, 0.2, 0.1, 0.1, 0.1, None, 0.2, 900, None, "cannot tell"),),
        verdict="a",
        best="a",
        cheapest="a",
        rule_of_thumb=RuleOfThumb(100, 5.0, 20.0, "n-grams", "."),
        curves=(LearningCurve("a", (10, 20), (SCORE, SCORE), {40: SCORE}, SCORE, "."),),
        notes=("one",),
    )
    assert Comparison.from_json(json.loads(json.dumps(comparison.json()))) == comparison
    assert comparison.model("a") == model
    assert {"task", "rows", "models", "pairs", "verdict"} <= comparison.json().keys()
    contract = {"name", "scores", "parameters", "train_seconds", "latency_ms", "texts_per_second", "bytes", "folder"}
    assert contract <= comparison.json()["models"][0].keys()
    assert {"a", "b", "metric", "difference", "low", "high", "p", "verdict"} <= comparison.json()["pairs"][0].keys()
    shown = comparison._repr_html_()
    assert "0.5 (0.4 to 0.6), 0 ms" in shown
    assert "failed" in shown
