"""The test page of `regard serve` in a browser."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from tests.browser.conftest import OpenPage
from tests.serve.helpers import table_of

from regard.serve.http.app import create_app


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with table_of("bert", "tagger", "reader", "gpt2") as table, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_app(table), log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_a_text_is_answered(open_url: OpenPage, url: str) -> None:
    page = open_url(f"{url}/")
    page.fill("#text", "the cook opened windows")
    page.click("text=Send")
    page.wait_for_selector("#json:visible")
    assert '"label"' in page.inner_text("#json")
    assert page.inner_text("#marked") in ("c0", "c1", "c2")
    assert page.inner_text("#curl").startswith(f"curl {url}/predict")
    page.select_option("#model", "tagger")
    page.click("text=Send")
    page.wait_for_selector("#json:has-text('entities')")
    assert page.inner_text("#marked").startswith("the")


def test_questions_and_prompts_have_their_fields(open_url: OpenPage, url: str) -> None:
    page = open_url(f"{url}/")
    page.wait_for_selector("#model option >> nth=3", state="attached")
    page.select_option("#model", "reader")
    page.select_option("#route", "/answer")
    page.fill("#text", "who opened windows")
    page.fill("#second", "the cook opened windows")
    page.click("text=Send")
    page.wait_for_selector("#json:has-text('candidates')")
    page.select_option("#model", "gpt2")
    page.select_option("#route", "/generate")
    assert page.inner_text("#text-label") == "Prompt"
    page.click("text=Send")
    page.wait_for_selector("#json:has-text('finish_reason')")
    open_url(f"{url}/docs")
