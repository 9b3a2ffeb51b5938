"""One browser for all tests: the system's Chromium, driven by Playwright. Without it these tests are skipped.

A test fails on any console error, any script error and any request that leaves the machine.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.look.models import TEXT, api

from regard.look.server import LookServer
from regard.predict import Model

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
OpenPage = Callable[..., Any]


def missing() -> str | None:
    if importlib.util.find_spec("playwright") is None:
        return "needs playwright: pip install playwright"
    return None if CHROMIUM else "needs Chromium: apt-get install chromium"


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """A browser for this folder: while it is open, an event loop runs in this process, which disturbs other tests."""
    if reason := missing():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_url(chromium: Any) -> Iterator[OpenPage]:
    """Open an address; at the end of the test, nothing may have gone wrong and nothing may have left the machine."""
    problems: list[str] = []
    expected: list[str] = []  # console messages that a test provokes
    contexts = []

    def watch(page: Any) -> None:
        page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if not is_local(request.url) else None)

    def open_page(url: str, *, width: int = 1280, dark: bool = False, expect: str | None = None) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        watch(page)
        if expect is not None:
            expected.append(expect)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [line for line in problems if not any(words in line for words in expected)] == []


def is_local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "data:", "blob:", "file:", "about:"))


@contextlib.contextmanager
def serving(*models: Model, **defaults: Any) -> Iterator[LookServer]:
    """The page of these models on a free port."""
    with LookServer(api(*models, **defaults)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def open_look(open_url: OpenPage) -> Iterator[OpenPage]:
    """Open the page of one model or several at a hash, ready."""
    with contextlib.ExitStack() as stack:

        def open_page(
            *models: Model,
            hash: str = "",
            text: str = TEXT,
            pair: str | None = None,
            data: Path | None = None,
            **more: Any,
        ) -> Any:
            server = stack.enter_context(serving(*models, text=text, pair=pair, data=data))
            page = open_url(server.url + hash, **more)
            page.wait_for_selector("main[data-ready]")
            page.server = server
            return page

        yield open_page


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screenshots")
