"""Two models side by side."""

from __future__ import annotations

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import api_answer, ready
from tests.look.models import KINDS, TEXT, transformer

from regard.look.views.arrays import unpacked


def test_two_models(open_look: OpenPage) -> None:
    other = transformer("tiny-bert", seed=7, heads={"pooled": 0, "sequence": 3})
    page = open_look(KINDS["classifier"](), other, hash="#view=compare&layer=1&heads=0")
    assert page.locator("canvas.map").count() == 2
    values = unpacked(api_answer(page, "difference", text=TEXT)["difference"]).flatten().tolist()
    drawn = page.eval_on_selector_all(".heat [data-value]", "all => all.map(e => +e.dataset.value)")
    assert drawn == pytest.approx(values, abs=1e-4)
    ready(page, lambda: page.click(".heat [data-value] >> nth=5"))
    assert "layer=2" in page.url


def test_models_of_different_kinds_say_why(open_look: OpenPage) -> None:
    page = open_look(KINDS["encoder"](), KINDS["gpt2"](), hash="#view=compare", expect="400")
    assert "different tokens" in page.inner_text("main")
    assert page.locator("canvas.map").count() == 2


def test_one_model_says_how_to_open_two(open_look: OpenPage) -> None:
    assert "--compare" in open_look(KINDS["encoder"](), hash="#view=compare").inner_text("main")
