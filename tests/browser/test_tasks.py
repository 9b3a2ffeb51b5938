"""Every view of models that were trained on a task: a pair model, a tagger and a reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import OpenPage
from tests.browser.pages import ready

import regard
from regard import samples

VIEWS = ("heads", "steps", "why", "lens", "whatif", "meaning", "reasons", "compare")
QUICK: dict[str, Any] = {"preset": "tiny-bert", "steps": 2, "device": "cpu", "batch_tokens": 512}


def pairs(folder: Path, write_rows: Callable[..., Path]) -> Path:
    rows = [(f"a warm film {n}", ("it is warm", "it is cold")[n % 2], ("yes", "no")[n % 2]) for n in range(30)]
    return write_rows(folder / "pairs.csv", rows, ("first", "second", "label"))


@pytest.mark.parametrize(
    ("task", "text", "pair"),
    [
        ("pair", "a warm film", "it is cold"),
        ("tag", "Anna lives in Paris with Tom.", None),
        ("answer", "Who burned the soup?", "The cook burned the soup and opened a window."),
    ],
)
def test_every_view_of_a_task(
    open_look: OpenPage, tmp_path: Path, write_rows: Callable[..., Path], task: str, text: str, pair: str | None
) -> None:
    data = {"tag": "places", "answer": "questions"}.get(task)
    source = pairs(tmp_path, write_rows) if data is None else samples.path(data)
    regard.train(source, task=task, out=tmp_path / "run", **QUICK)
    page = open_look(regard.load(tmp_path / "run", device="cpu"), text=text, pair=pair, hash="#token=2&key=1")
    assert page.locator(".products rect").count() > 0
    for view in VIEWS[1:]:
        ready(page, lambda view=view: page.click(f"#tab-{view}"))  # type: ignore[misc]
        if view == "why":
            page.wait_for_selector(".view-why[data-done]")
            assert page.locator("[data-method] .word").count() > 0
        assert page.inner_text("main").strip()
        assert page.locator("main .error").count() == 0, page.inner_text("main")
    assert page.inner_text("#answer").strip()
