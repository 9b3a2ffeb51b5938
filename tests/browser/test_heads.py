"""The view of heads: links, keys and masks."""

from __future__ import annotations

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, ready
from tests.look.models import KINDS, TEXT

from regard.look.views.arrays import unpacked


def test_selections_are_linked(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"]())
    ready(page, lambda: page.click('[aria-label="Queries"] .token >> nth=2'))
    ready(page, lambda: page.click(".strongest .token >> nth=0"))
    assert "token=2" in page.url
    answer = api_answer(
        page, "pair", text=TEXT, layer=1, head=0, query=2, key=int(page.url.split("key=")[1].split("&")[0])
    )
    drawn = page.eval_on_selector_all(".products rect", "all => all.map(e => +e.dataset.product)")
    assert drawn == pytest.approx(answer["products"])
    ready(page, lambda: page.click("text=Heat map"))
    assert page.locator(".map-box .mark").count() == 1
    url = page.url
    ready(page, lambda: page.click("text=All heads"))
    assert page.locator(".thumb").count() == 8
    ready(page, lambda: page.click(".thumb >> nth=5"))
    assert "layer=2" in page.url
    assert "heads=1" in page.url
    assert url != page.url


def test_a_copied_link_restores_the_view(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), hash="#mode=map&layer=2&heads=1&token=3&key=1&text=warm+and+cold")
    assert page.input_value("textarea >> nth=0") == "warm and cold"
    assert page.get_attribute(".chip[aria-pressed=true]", "aria-label") == "head 1"
    assert "layer 2, head 1" in page.inner_text(".side")


def test_the_heat_map_with_the_keyboard(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), hash="#mode=map&layer=1&heads=0", text=" ".join([TEXT] * 4))
    page.focus("canvas.map")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    weights = unpacked(api_answer(page, "map", text=" ".join([TEXT] * 4), layer=1, heads=[0])["weights"])[0]
    assert f"{float(weights[1, 1]):.3f}" in page.inner_text("#status")
    page.keyboard.press("+")
    page.wait_for_function("() => document.querySelector('canvas.map').dataset.rows !== '0-22'")
    assert not page.is_disabled("text=Whole")


def test_a_mask_is_gray(open_look: OpenPage) -> None:
    page = open_look(KINDS["gpt2"](), hash="#mode=map")
    corner = "c => [...c.getContext('2d').getImageData(c.width - 1, 0, 1, 1).data].slice(0, 3)"
    assert page.eval_on_selector("canvas.map", corner) == [240, 241, 244]
    assert "hidden by the mask" in page.inner_text("main")
