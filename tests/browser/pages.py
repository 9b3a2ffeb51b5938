"""What the tests of the page share."""

from __future__ import annotations

import json
from typing import Any


def api_answer(page: Any, path: str, **values: Any) -> dict[str, Any]:
    """The answer of the server behind a page."""
    response = page.server.api.handle("POST", f"/api/{path}", json.dumps(values).encode())
    answer: dict[str, Any] = json.loads(response.body)
    return answer


def ready(page: Any, action: Any) -> None:
    """Do something that changes the view, and wait until it is drawn."""
    before = page.get_attribute("main", "data-ready")
    action()
    page.wait_for_function("before => document.querySelector('main').dataset.ready !== before", arg=before)


def no_sideways_scrolling(page: Any) -> bool:
    width: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return width <= 0
