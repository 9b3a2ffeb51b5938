"""The page in a file: every view opens without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser.conftest import OpenPage
from tests.browser.pages import ready
from tests.look.models import KINDS, TEXT, session, transformer

from regard.look.html_file import look_page, session_page

VIEWS = ("heads", "steps", "why", "lens", "whatif", "meaning", "reasons", "compare")


def test_every_view_opens_from_a_file(open_url: OpenPage, tmp_path: Path) -> None:
    other = transformer("tiny-bert", seed=3)
    path = session_page(session(KINDS["classifier"](), other, text="warm film")).save(tmp_path / "page.html")
    page: Any = open_url(f"{path.as_uri()}#token=1&key=0")
    page.wait_for_selector("main[data-ready]")
    assert page.locator(".products rect").count() > 0
    for view in VIEWS[1:]:
        ready(page, lambda view=view: page.click(f"#tab-{view}"))  # type: ignore[misc]
        assert page.inner_text("main").strip()
        assert page.locator("main .error").count() == 0, view


def test_steps_that_a_file_does_not_hold(open_url: OpenPage, tmp_path: Path) -> None:
    path = session_page(session(KINDS["encoder"](), text=TEXT)).save(tmp_path / "page.html")
    page: Any = open_url(f"{path.as_uri()}#view=steps&layer=2&heads=3&token=2")
    page.wait_for_selector("main[data-ready]")
    assert "head 0 of layer 1 at every token" in page.inner_text(".saved-steps")
    assert "layer 2, head 3" in page.inner_text("main")
    ready(page, lambda: page.click(".go-to >> nth=0"))
    assert page.locator(".scores [data-weight]").count() > 0


def test_a_notebook_shows_it(open_url: OpenPage, tmp_path: Path) -> None:
    frame = look_page(KINDS["encoder"](), TEXT)._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{frame}", encoding="utf-8")
    page = open_url((tmp_path / "notebook.html").as_uri())
    inner = page.frame_locator("iframe")
    inner.locator(".lines path").first.wait_for(state="attached")
    inner.locator("text=Heat map").click()
    inner.locator("canvas.map").wait_for()
