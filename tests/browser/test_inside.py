"""Lens, What if and Meaning in context."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready
from tests.look.models import KINDS, TEXT

import regard


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "llama", "masked", "translator"])
def test_lens(open_look: OpenPage, kind: str) -> None:
    page = open_look(KINDS[kind](), hash="#view=lens", width=390 if kind == "gpt2" else 1280)
    answer = api_answer(page, "lens", text=TEXT)
    drawn = page.eval_on_selector_all(".lens .cell", "all => all.map(e => +e.dataset.value)")
    if answer["kind"] == "classes":
        expected = sorted(value for row in answer["probabilities"] for value in row)
    else:
        expected = sorted(words[0]["probability"] for row in answer["words"] for words in row)
    assert sorted(drawn) == pytest.approx(expected, abs=1e-5)
    assert no_sideways_scrolling(page)


@pytest.mark.parametrize("kind", ["encoder", "gru"])
def test_models_without_predictions_by_layer(open_look: OpenPage, kind: str) -> None:
    assert "instead" in open_look(KINDS[kind](), hash="#view=lens").inner_text("main")


def test_a_changed_text(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=whatif&edit=2")
    ready(page, lambda: page.click("button:text-is('Delete')"))
    changed = page.input_value("[aria-label='Changed text']")
    assert changed != TEXT
    score = api_answer(page, "answer", text=changed)["bars"][0][1]
    after = page.eval_on_selector_all(".side-of:nth-child(2) li", "all => all.map(e => +e.dataset.score)")
    assert after[0] == pytest.approx(score)
    ready(page, lambda: page.click(".tokens .token >> nth=1"))
    ready(page, lambda: page.click("button:text-is('Mask')"))
    assert "[MASK]" in page.input_value("[aria-label='Changed text']")
    ready(page, lambda: page.click("button:text-is('Undo all')"))
    ready(page, lambda: page.click(".tokens .token >> nth=1"))
    ready(page, lambda: page.click("button:text-is('Swap with the next')"))
    assert sorted(page.input_value("[aria-label='Changed text']").split()) == sorted(TEXT.split())
    page.fill("#new-word", "film")
    ready(page, lambda: page.press("#new-word", "Enter"))
    assert "film" in page.input_value("[aria-label='Changed text']")


def test_switched_off_heads(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=whatif")
    ready(page, lambda: page.click("[aria-label='layer 1, head 2']"))
    ready(page, lambda: page.click("button:text-is('layer 2')"))
    assert page.get_attribute("[aria-label='layer 1, head 2']", "aria-checked") == "false"
    score = api_answer(page, "answer", text=TEXT, off=[[1, 2]], skipped=[2])["bars"][0][1]
    after = page.eval_on_selector_all(".side-of:nth-child(2) li", "all => all.map(e => +e.dataset.score)")
    assert after[0] == pytest.approx(score)


def test_words_that_change_the_answer(open_look: OpenPage, trained: Path) -> None:
    page = open_look(regard.load(trained, device="cpu"), hash="#view=whatif", text="a lovely film")
    page.click("#counterfactuals")
    page.wait_for_selector("[data-done]")
    changes = api_answer(page, "counterfactuals", text="a lovely film")["changes"]
    drawn = page.eval_on_selector_all("[data-text]", "all => all.map(e => e.dataset.text)")
    assert drawn == [change["text"] for change in changes][:20]


def test_what_if_of_networks_without_heads(open_look: OpenPage) -> None:
    page = open_look(KINDS["gru"](), hash="#view=whatif")
    assert "no heads or blocks" in page.inner_text("main")


def test_meaning(open_look: OpenPage) -> None:
    page = open_look(KINDS["gpt2"](), hash="#view=meaning&word=film&sentences=a+dull+film%0Awarm+film+and+soup")
    answer = api_answer(page, "meaning", word="film", sentences="a dull film\nwarm film and soup")
    dots = page.eval_on_selector_all(".dot", "all => all.map(e => [+e.dataset.x, +e.dataset.y])")
    assert dots == [pytest.approx(point) for point in answer["points"][-1]]
    cosines = page.eval_on_selector_all(".heat .cell", "all => all.map(e => +e.dataset.value)")
    assert cosines[1] == pytest.approx(answer["cosines"][-1][0][1])
    page.fill("[aria-label=Word]", "soup")
    ready(page, lambda: page.click("button:text-is('Compare')"))
    assert "does not have the word" in page.inner_text("[role=alert]")
