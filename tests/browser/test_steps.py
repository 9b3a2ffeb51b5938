"""Step by step: the numbers on the page are those of the API."""

from __future__ import annotations

import math

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready
from tests.look.models import KINDS, TEXT


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "llama", "relative", "translator"])
def test_scores_and_weights(open_look: OpenPage, kind: str) -> None:
    page = open_look(KINDS[kind](), hash="#view=steps&token=2&layer=1&heads=1")
    answer = api_answer(page, "steps", text=TEXT, layer=1, head=1, token=2)
    drawn = page.eval_on_selector_all(".scores [data-weight]", "all => all.map(e => +e.dataset.weight)")
    assert drawn == pytest.approx(answer["weights"])
    assert page.locator(".scores .masked").count() == answer["allowed"].count(False)
    shapes = page.eval_on_selector_all(".step .shape", "all => all.map(e => e.textContent)")
    assert any(f"({len(answer['query'])} × {answer['all_keys']})" in shape for shape in shapes)


def test_hands_turn_with_the_position(open_look: OpenPage) -> None:
    page = open_look(KINDS["llama"](), hash="#view=steps&token=1")
    hands = api_answer(page, "positions")["hands"]
    page.fill("input[type=range]", "9")
    drawn = page.eval_on_selector_all(".hand", "all => all.map(e => [+e.dataset.angle, +e.getAttribute('x2')])")
    for at, (hand, (angle, x)) in enumerate(zip(hands, drawn, strict=True)):
        assert angle == pytest.approx(9 * hand["rate"], abs=1e-5)
        assert x == pytest.approx(at * 84 + 42 + 34 * math.sin(angle), abs=1e-3)


def test_a_changed_word(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=steps&token=2", width=390)
    page.fill("#change-word", "film")
    ready(page, lambda: page.click("button:text-is('Compare')"))
    values = page.eval_on_selector_all(".heat .cell", "all => all.map(e => +e.dataset.value)")
    assert max(values) > 0
    assert "Answer" in page.inner_text("main")
    assert no_sideways_scrolling(page)


def test_recurrent_networks_say_what_they_show_instead(open_look: OpenPage) -> None:
    assert "Heads shows it" in open_look(KINDS["gru"](), hash="#view=steps").inner_text("main")
    assert "no heads to draw" in open_look(KINDS["plain gru"](), hash="#view=steps").inner_text("main")
