"""What the views show of models that have no heads, no classes or several parts, and what follows a click."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready
from tests.look.models import KINDS, TEXT


@pytest.mark.parametrize(
    ("kind", "view", "words"),
    [
        ("encoder", "lens", "instead"),
        ("gru", "lens", "instead"),
        ("gru", "steps", "Heads shows it"),
        ("plain gru", "steps", "no heads to draw"),
        ("plain gru", "heads", "What it can show instead"),
        ("gru", "whatif", "no heads or blocks"),
        ("gpt2", "reasons", "instead"),
        ("classifier", "reasons", "--data FILE"),
        ("encoder", "compare", "--compare"),
    ],
)
def test_a_view_that_does_not_fit_says_what_does(open_look: OpenPage, kind: str, view: str, words: str) -> None:
    assert words in open_look(KINDS[kind](), hash=f"#view={view}").inner_text("main")


def test_a_translator(open_look: OpenPage) -> None:
    page = open_look(KINDS["translator"](), hash="#view=steps&token=2&layer=1&heads=1")
    answer = api_answer(page, "steps", text=TEXT, layer=1, head=1, token=2)
    weights = page.eval_on_selector_all(".scores [data-weight]", "all => all.map(e => +e.dataset.weight)")
    assert weights == pytest.approx(answer["weights"])
    ready(page, lambda: page.click("#tab-heads"))
    for part in ("encoder", "decoder", "cross"):
        ready(page, lambda part=part: page.select_option("[aria-label=Attention]", part))  # type: ignore[misc]
        assert page.locator(".lines path").count() > 0


def test_a_language_model(open_look: OpenPage) -> None:
    page = open_look(KINDS["gpt2"](), hash="#view=lens", width=390)
    expected = sorted(words[0]["probability"] for row in api_answer(page, "lens", text=TEXT)["words"] for words in row)
    drawn = page.eval_on_selector_all(".lens .cell", "all => all.map(e => +e.dataset.value)")
    assert sorted(drawn) == pytest.approx(expected, abs=1e-5)
    assert no_sideways_scrolling(page)


def test_hands_turn_with_the_position(open_look: OpenPage) -> None:
    page = open_look(KINDS["llama"](), hash="#view=steps&token=1")
    hands = api_answer(page, "positions")["hands"]
    page.fill("input[type=range]", "9")
    drawn = page.eval_on_selector_all(".hand", "all => all.map(e => [+e.dataset.angle, +e.getAttribute('x2')])")
    for at, (hand, (angle, x)) in enumerate(zip(hands, drawn, strict=True)):
        assert angle == pytest.approx(9 * hand["rate"], abs=1e-5)
        assert x == pytest.approx(at * 84 + 42 + 34 * math.sin(angle), abs=1e-3)


def test_a_text_that_is_changed_word_by_word(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=whatif&edit=2")

    def changed() -> Any:
        return page.input_value("[aria-label='Changed text']")

    ready(page, lambda: page.click("button:text-is('Mask')"))
    assert "[MASK]" in changed()
    ready(page, lambda: page.click("button:text-is('Undo all')"))
    ready(page, lambda: page.click(".tokens .token >> nth=1"))
    ready(page, lambda: page.click("button:text-is('Swap with the next')"))
    assert sorted(changed().split()) == sorted(TEXT.split())
    page.fill("#new-word", "film")
    ready(page, lambda: page.press("#new-word", "Enter"))
    assert "film" in changed()


def test_layers_that_are_switched_off(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=whatif")
    ready(page, lambda: page.click("[aria-label='layer 1, head 2']"))
    ready(page, lambda: page.click("button:text-is('layer 2')"))
    assert page.get_attribute("[aria-label='layer 1, head 2']", "aria-checked") == "false"
    score = api_answer(page, "answer", text=TEXT, off=[[1, 2]], skipped=[2])["bars"][0][1]
    after = page.eval_on_selector_all(".side-of:nth-child(2) li", "all => all.map(e => +e.dataset.score)")
    assert after[0] == pytest.approx(score)


def test_a_word_that_no_sentence_has(open_look: OpenPage) -> None:
    page = open_look(KINDS["gpt2"](), hash="#view=meaning&word=film&sentences=a+dull+film%0Awarm+film+and+soup")
    page.fill("[aria-label=Word]", "soup")
    ready(page, lambda: page.click("button:text-is('Compare')"))
    assert "does not have the word" in page.inner_text("[role=alert]")


def test_models_that_cannot_be_compared(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), KINDS["gpt2"](), hash="#view=compare", expect="400")
    assert "different tokens" in page.inner_text("main")
    assert page.locator("canvas.map").count() == 2
