"""The frame of the page: texts of every kind, errors, light and dark, wide and narrow."""

from __future__ import annotations

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import no_sideways_scrolling, ready
from tests.look.models import KINDS, LONG

HOSTILE = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 2</script>'


def test_markup_is_shown_as_text(open_look: OpenPage) -> None:
    page = open_look(KINDS["classifier"](), text=HOSTILE)
    assert page.input_value("textarea >> nth=0") == HOSTILE
    ready(page, lambda: page.click('[aria-label="Queries"] .token >> nth=1'))
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize(
    "text",
    ["مرحبا the cook שלום", "東京 は 大きい 都市", "😀👩‍👩‍👧 soup 🍲", "x" * 10_000, "a\u202eb\u2066c"],
    ids=ascii,
)
def test_texts_of_every_kind_are_laid_out(open_look: OpenPage, text: str) -> None:
    page = open_look(KINDS["gpt2"]() if len(text) < 1000 else KINDS["classifier"](), text=text)
    assert page.locator(".token").count() > 2
    assert no_sideways_scrolling(page)
    page.set_viewport_size({"width": 390, "height": 800})
    assert no_sideways_scrolling(page)


def test_a_long_text_opens_every_view(open_look: OpenPage) -> None:
    page = open_look(LONG(), text=" ".join(["soup"] * 1500))
    assert "is shown in 2 windows" in page.inner_text("body")
    assert "The heat map shows them all" in page.inner_text("main")
    ready(page, lambda: page.click("text=Open the heat map"))
    page.focus("canvas.map")
    page.keyboard.press("+")
    assert page.get_attribute("canvas.map", "data-rows") == "0-512"
    for view in ("steps", "lens", "whatif"):
        ready(page, lambda view=view: page.click(f"#tab-{view}"))  # type: ignore[misc]
        assert page.locator("main .error").count() == 0
        assert no_sideways_scrolling(page)


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(open_look: OpenPage, dark: bool) -> None:
    page = open_look(KINDS["encoder"](), dark=dark)
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (color == "rgb(17, 20, 26)") is dark


def test_an_empty_text_and_a_new_one(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), text="")
    assert "Write a text" in page.inner_text("main")
    page.fill("textarea >> nth=0", "warm and cold")
    ready(page, lambda: page.click(".go"))
    assert page.locator(".lines path").count() > 0


def test_errors_are_shown_in_words(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), expect="400")
    page.fill("textarea >> nth=0", "\u200b")
    ready(page, lambda: page.press("textarea >> nth=0", "Enter"))
    assert "no token" in page.inner_text("[role=alert]") or "empty" in page.inner_text("[role=alert]")


def test_a_layer_that_does_not_exist_becomes_the_last(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), hash="#layer=99&heads=77&token=999&key=999")
    assert page.input_value("[aria-label=Layer]") == "2"
    assert page.locator(".lines path").count() > 0
