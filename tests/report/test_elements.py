"""Building blocks of pages."""

from __future__ import annotations

import math

from regard.metrics.confidence import Score
from regard.report.elements import (
    card,
    code,
    example,
    folded,
    grid,
    html_page,
    key_values,
    score_table,
    shortened,
    table,
)
from regard.report.row_facts import RowExample

BAD = '<b>&"'


def test_every_element_escapes_its_texts() -> None:
    one = RowExample("file <x>", (("text", BAD), ("other", BAD)), target=BAD, answer=BAD, confidence=0.5, suggested=BAD)
    page = html_page(BAD, card(BAD, key_values({BAD: BAD}) + code(BAD) + example(one) + folded(BAD, "x"), note=BAD))
    assert "<b>" not in page
    assert page.count("&lt;b&gt;&amp;&quot;") == 11


def test_elements_without_content_are_left_out() -> None:
    assert card("title", "") == ""
    assert grid(["", ""]) == ""
    assert folded("more", "") == ""
    assert table(["a"], []) == ""
    assert key_values({"a": None, "b": ""}) == ""
    assert score_table(["score"], []) == ""


def test_scores_share_a_scale() -> None:
    scores = [(("a",), Score(0.9, 0.8, 0.95)), (("b",), Score(math.nan, math.nan, math.nan))]
    assert "0.5 to 1" in score_table(["score"], scores)
    assert "0 to 1" in score_table(["score"], [*scores, (("c",), Score(0.2, 0.1, 0.3))])
    assert "-2 to 30" in score_table(["score"], [(("c",), Score(3.0, -2.0, 30.0))])


def test_scores_on_another_scale_have_no_bar() -> None:
    scores = [(("pearson",), Score(0.3, -0.1, 0.5)), (("mse",), Score(3.0, 2.0, 30.0))]
    content = score_table(["score"], scores, without_bar=[1])
    assert "-0.1 to 0.5" in content
    assert content.count("<svg") == score_table(["score"], scores[:1]).count("<svg") == 1


def test_long_texts_are_shortened() -> None:
    assert shortened("x" * 700).endswith("x…")
    assert len(shortened("x" * 700)) == 600
