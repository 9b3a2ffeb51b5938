"""The JSON API and the files of the page: from (method, path, body) to (status, content type, bytes).

It knows no socket. A server mounts it: `look/server.py` on a port of this machine, or another next to its own routes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from regard.errors import InputError, RegardError, did_you_mean, shorten
from regard.look.session import LookSession, describe
from regard.look.views import VIEWS
from regard.look.views.fields import Fields

MAX_BODY = 4 << 20  # bytes of a request
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
API, VIEW = "/api/", "/view/"
JSON_TYPE = "application/json; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class _UnknownView(Exception):
    """The page has no view of that name."""


@dataclass(frozen=True)
class LookResponse:
    """What a server sends; `HEADERS` come on top."""

    status: int
    content_type: str
    body: bytes


class LookApi:
    """Answers the requests of the page for one session.

    `/api/NAME` and `/view/NAME` are the same, but for the status of an answer in words ("this model has no heads"):
    the page asks under `/view/`, where it is 200, because browsers report any other as an error of the page.
    """

    def __init__(self, session: LookSession) -> None:
        self.session = session

    def handle(self, method: str, path: str, body: bytes = b"") -> LookResponse:
        """One request; an error is a JSON object with `error`, in words, and `error_type`."""
        try:
            prefix = next((prefix for prefix in (API, VIEW) if path.startswith(prefix)), None)
            if method == "GET" and prefix is None:
                return page_file(path)
            if method not in ("GET", "POST"):
                return failure(405, f"{method} is not a method of this page; use GET or POST.", "MethodNotAllowed")
            values = self.answer(path.removeprefix(prefix or ""), _body(body))
            return LookResponse(200, JSON_TYPE, _json(values))
        except RegardError as error:
            return failure(200 if path.startswith(VIEW) else 400, str(error), type(error).__name__)
        except _UnknownView as error:
            return failure(404, str(error), "NotFound")
        except Exception as error:  # one request that fails must not end the page
            return failure(500, f"the computation failed: {shorten(str(error), 300)}", type(error).__name__)

    def answer(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of one view as plain values."""
        with self.session.lock:
            if name == "page":
                return page_values(self.session)
            if name not in VIEWS:
                raise _UnknownView(f'there is no "{shorten(name, 80)}" here.{did_you_mean(name, VIEWS)}')
            view: Callable[[LookSession, Fields], dict[str, Any]] = VIEWS[name]
            return view(self.session, Fields(values))


def page_values(session: LookSession) -> dict[str, Any]:
    """The models of the page and the text it starts with."""
    defaults = session.defaults
    return {
        "models": [describe(name, model) for name, model in session.models],
        "text": defaults.text,
        "pair": defaults.pair,
        "target": defaults.target,
        "data": None if defaults.data is None else defaults.data.name,
    }


def page_file(path: str) -> LookResponse:
    """A file of the page; `/` is its HTML."""
    name = "index.html" if path in ("/", "") else path.removeprefix("/")
    suffix = name[name.rfind(".") :]
    files = {item.name: item for item in resources.files("regard.look").joinpath("page").iterdir()}
    if suffix not in TYPES or name not in files:
        return failure(404, f'there is no "{shorten(name, 80)}" here.', "NotFound")
    return LookResponse(200, TYPES[suffix], files[name].read_bytes())


def failure(status: int, message: str, kind: str) -> LookResponse:
    """An error as the page shows it."""
    return LookResponse(status, JSON_TYPE, _json({"error": message, "error_type": kind}))


def _body(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY:
        raise InputError(f"the request has {len(body):,} bytes, expected at most {MAX_BODY:,}. Give a shorter text.")
    if not body:
        return {}
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON ({shorten(str(error), 100)}).") from error
    if not isinstance(values, dict):
        raise InputError(f"the request is a JSON {type(values).__name__}, expected an object.")
    return values


def _json(values: Mapping[str, Any]) -> bytes:
    """JSON without NaN and infinity, which browsers refuse."""
    try:
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(values), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
