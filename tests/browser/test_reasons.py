"""Why this answer, and right for the wrong reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, no_sideways_scrolling, ready
from tests.look.models import KINDS, TEXT

import regard
from regard.look.views import data_set


@pytest.mark.parametrize("kind", ["classifier", "gpt2", "translator", "gru", "encoder"])
def test_every_method_beside_the_others(open_look: OpenPage, kind: str) -> None:
    page = open_look(KINDS[kind](), hash="#view=why")
    page.wait_for_selector(".view-why[data-done]")
    assert "not an explanation" in page.inner_text("main")
    fitting = [method["name"] for method in api_answer(page, "methods")["methods"] if not method["why_not"]]
    drawn = page.eval_on_selector_all("[data-method]", "all => all.map(e => e.dataset.method)")
    assert drawn == fitting
    for name in (fitting[0], "occlusion"):
        words = api_answer(page, "explain", text=TEXT, method=name)["words"]
        scores = page.eval_on_selector_all(
            f"[data-method={name}] .word", "all => all.map(e => [e.textContent, +e.dataset.score])"
        )
        assert scores
        expected = {(word["text"], round(word["score"], 4)) for word in words}
        assert {(word, round(score, 4)) for word, score in scores} <= expected
    assert page.locator("[data-row='random order']").count() == 1 or kind == "encoder"


def test_another_target(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), hash="#view=why", width=390)
    page.wait_for_selector(".view-why[data-done]")
    first = page.inner_text(".lead")
    options = page.eval_on_selector_all("[aria-label=Explain] option", "all => all.map(e => e.value)")
    other = next(option for option in options if option and f'"{option}"' not in first)
    ready(page, lambda: page.select_option("[aria-label=Explain]", other))
    assert f'"{other}"' in page.inner_text(".lead")
    assert no_sideways_scrolling(page)


def test_words_it_relies_on(
    open_look: OpenPage, trained: Path, reviews_csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_set, "ROWS", {"words": 16, "heads": 4, "faithfulness": 2})
    model = regard.load(trained, device="cpu")
    page = open_look(model, hash="#view=reasons", text="a lovely film", data=reviews_csv)
    page.click(".job .go")
    page.wait_for_selector(".job[data-done]")
    classes = api_answer(page, "job", name="words")["result"]["classes"]
    drawn = page.eval_on_selector_all("[data-class]", "all => all.map(e => e.dataset.class)")
    assert drawn == [each["label"] for each in classes]
    ready(page, lambda: page.click("#tab-whatif"))
    page.click("[data-job=heads] .go")
    page.wait_for_selector("[data-job=heads][data-done]")
    lost = api_answer(page, "job", name="heads")["result"]["heads"]
    cells = page.eval_on_selector_all("[data-job=heads] [data-value]", "all => all.map(e => +e.dataset.value)")
    assert cells == pytest.approx([value for row in lost for value in row])
    ready(page, lambda: page.click("#tab-why"))
    page.click("[data-job=faithfulness] .go")
    page.wait_for_selector("[data-job=faithfulness][data-done]")


def test_without_data_and_without_classes(open_look: OpenPage) -> None:
    assert "--data FILE" in open_look(KINDS["classifier"](), hash="#view=reasons").inner_text("main")
    assert "instead" in open_look(KINDS["gpt2"](), hash="#view=reasons").inner_text("main")
