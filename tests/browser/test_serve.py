"""The test page of `regard serve` in a browser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from tests.browser.conftest import OpenPage
from tests.serve.helpers import table_of

from regard.serve.api_keys import ApiKeys
from regard.serve.http.app import create_app

# Requests of the page's script wait until the test calls release().
HELD = """
const { fetch } = window;
const released = new Promise((resolve) => { window.release = resolve; });
window.fetch = (...request) => released.then(() => fetch(...request));
"""


@contextmanager
def running(*kinds: str, keys: ApiKeys | None = None) -> Iterator[str]:
    with table_of(*kinds) as table, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(table, keys=keys), log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running("bert", "tagger", "reader", "gpt2", "masked", "t5") as address:
        yield address


def test_a_text_is_answered(open_url: OpenPage, url: str) -> None:
    page = open_url(f"{url}/")
    page.fill("#text", "the cook opened windows")
    page.click("#send")
    page.wait_for_selector("#json:visible")
    assert '"label"' in page.inner_text("#json")
    assert page.inner_text("#marked .headline") in ("c0", "c1", "c2")
    assert page.locator("#marked .bars li").count() == 3
    score = float(page.inner_text("#marked .bars li >> nth=0 >> .n"))
    width = page.evaluate("document.querySelector('#marked .bar').style.width")
    assert float(width.removesuffix("%")) == pytest.approx(100 * score, abs=0.1)
    assert page.inner_text("#curl").startswith(f"curl {url}/predict")
    page.select_option("#model", "tagger")
    page.click("#send")
    page.wait_for_selector("#json:has-text('entities')")
    assert page.inner_text("#marked").startswith("the")


def test_a_click_before_the_models_are_known_is_answered(open_url: OpenPage, url: str) -> None:
    page = open_url(f"{url}/")
    page.wait_for_selector("#model option >> nth=3", state="attached")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(HELD)
    page.reload()
    page.fill("#text", "the cook opened windows")
    page.click("#send")
    assert page.locator("#model option").count() == 0
    page.evaluate("release()")
    page.wait_for_selector("#json:visible")
    assert page.inner_text("#marked .headline") in ("c0", "c1", "c2")
    assert asked.count(f"{url}/info") == 1


def test_questions_and_prompts_have_their_fields(open_url: OpenPage, url: str) -> None:
    page = open_url(f"{url}/")
    page.wait_for_selector("#model option >> nth=3", state="attached")
    page.select_option("#model", "reader")
    page.select_option("#route", "/answer")
    page.fill("#text", "who opened windows")
    page.fill("#second", "the cook opened windows")
    page.click("#send")
    page.wait_for_selector("#json:has-text('candidates')")
    page.select_option("#model", "gpt2")
    page.select_option("#route", "/generate")
    assert page.inner_text("#text-label") == "Prompt"
    page.click("#send")
    page.wait_for_selector("#json:has-text('finish_reason')")
    open_url(f"{url}/docs")


def test_the_page_asks_for_an_api_key(open_url: OpenPage) -> None:
    with running("bert", keys=ApiKeys(["a-long-key"])) as url:
        page = open_url(f"{url}/", expect="401")
        page.wait_for_selector("#error:visible")
        assert page.inner_text("#error") == "This server needs an API key. Type it above."
        page.fill("#key", "a-long-key")
        page.click("#text")
        page.wait_for_selector("#model option", state="attached")
        page.click("#docs")
        page.wait_for_selector("h2:has-text('POST /predict')")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_every_kind_of_answer_is_drawn(open_url: OpenPage, url: str, width: int, dark: bool) -> None:
    page = open_url(f"{url}/", width=width, dark=dark)
    page.wait_for_selector("#model option >> nth=5", state="attached")
    for model, route, text, drawn in (
        ("bert", "/predict", "a warm film", ".bars li"),
        ("bert", "/explain", "a warm film", ".text span"),
        ("bert", "/embed", "a warm film", "svg rect"),
        ("bert", "/tokenize", "a warm film", ".chip"),
        ("tagger", "/predict", "the cook \U0001f600 opened windows", "mark small"),
        ("masked", "/fill", "a [MASK] film", ".bars li"),
        ("gpt2", "/generate", "a film", ".headline"),
        ("t5", "/translate", "a film", ".headline"),
    ):
        page.select_option("#model", model)
        page.select_option("#route", route)
        page.fill("#text", text)
        page.evaluate("document.getElementById('marked').replaceChildren()")
        page.click("#send")
        page.wait_for_selector(f"#marked {drawn}", state="attached")
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), (model, route)
