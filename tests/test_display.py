"""Results in notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.display import html_summary, html_table
from regard.metrics.confidence import Score
from regard.tasks.classify import LabelAnswer
from regard.training.result import TrainResult


def test_cells_are_escaped_and_numbers_short() -> None:
    page = html_table(["<a>"], [("<b>", 1234, 0.123456, ("x", 2), {"y": 0.5}, True)])
    assert "<b>" not in page
    for text in ("&lt;a&gt;", "&lt;b&gt;", "1,234", "0.1235", "x, 2", "y 0.5", "True"):
        assert text in page
    assert "none" not in html_summary("title", {"none": None, "one_two": 1})
    assert "one two" in html_summary("title", {"one_two": 1})


def test_answers_models_and_results_are_shown_as_tables(trained: Path) -> None:
    answer = LabelAnswer(label="<good>", score=0.9, scores={"<good>": 0.9, "bad": 0.1})
    assert "&lt;good&gt;" in answer._repr_html_()
    model = regard.load(trained, device="cpu")
    assert "parameters" in model._repr_html_()
    result = TrainResult(
        "classify", 10, {"accuracy": Score(0.5, 0.4, 0.6)}, 1.0, "runs/x", 2, 3, 0, stopped_early=False
    )
    assert "0.4 to 0.6" in result._repr_html_()


@pytest.mark.parametrize("abstain", [None, 0.5])
def test_an_evaluation_is_shown_as_a_table(trained: Path, reviews_csv: Path, abstain: float | None) -> None:
    page = regard.evaluate(trained, reviews_csv, abstain=abstain)._repr_html_()
    assert "accuracy" in page
    assert "calibration error" in page
    assert ("answered" in page) == (abstain is not None)
