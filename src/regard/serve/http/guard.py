"""What every request passes first: its id, limits of headers, body and connections, its API key, and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.api_keys import ApiKeys
from regard.serve.http.metrics import ServeMetrics
from regard.serve.http.problems import problem
from regard.serve.model_table import ModelTable

LOG = logging.getLogger("regard.serve")
OPEN_ROUTES = ("/health", "/ready")  # need no key: load balancers ask for them
PAGE_ROUTES = ("/", "/page/page.css", "/page/page.js", "/page/answers.js")  # need no key: the page has a field for it
MAX_ID_LENGTH = 100


class Refused(Exception):
    """A request that is answered without looking at what it asks for."""

    def __init__(self, status: int, message: str, kind: str, **headers: str) -> None:
        super().__init__(message)
        self.response = problem(status, message, kind, headers)


class Guard:
    """ASGI middleware. It reads the whole body, within the limits, before the application runs."""

    def __init__(self, app: ASGIApp, *, table: ModelTable, keys: ApiKeys, metrics: ServeMetrics) -> None:
        self.app = app
        self.table = table
        self.limits = table.limits
        self.keys = keys
        self.metrics = metrics
        self.open_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        record = RequestRecord(scope)
        self.open_requests += 1
        self.metrics.in_progress.inc()
        try:
            await self._answer(scope, receive, record.sending(send))
        finally:
            self.open_requests -= 1
            self.metrics.in_progress.dec()
            record.finish(self.metrics)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
            if scope["method"] == "POST":
                receive = await self._read(scope, receive)
        except Refused as refused:
            await refused.response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        limits = self.limits
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size > limits.max_header_bytes:
            raise Refused(
                431,
                f"the headers have {size:,} bytes, expected at most {limits.max_header_bytes:,}.",
                "TooLarge",
                Connection="close",
            )
        if scope["path"] not in (*OPEN_ROUTES, *PAGE_ROUTES) and not self.keys.accept(_header(scope, b"authorization")):
            raise Refused(
                401,
                "the API key is missing or wrong. Send it as the header Authorization: Bearer KEY.",
                "Unauthorized",
                **{"WWW-Authenticate": "Bearer"},
            )
        if self.table.draining and scope["path"] not in OPEN_ROUTES:
            raise Refused(
                503,
                "the server is shutting down. Send the request to another one.",
                "NotReady",
                **{"Retry-After": "1", "Connection": "close"},
            )
        if self.open_requests > limits.max_connections and scope["path"] not in OPEN_ROUTES:
            raise Refused(
                503,
                "too many requests are in progress. Try again in a moment.",
                "TooManyConnections",
                **{"Retry-After": "1"},
            )

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """The body, read with limits of size and time; the result replays it."""
        limit = self.limits.max_body_bytes
        length = _header(scope, b"content-length") or "0"
        if length.isdecimal() and int(length[:18]) > limit:
            raise _body_too_large(limit)
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                body = await _body(receive, limit)
        except TimeoutError as error:
            raise Refused(400, "the body did not arrive in time.", "SlowBody", Connection="close") from error
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay


class RequestRecord:
    """What the log and the metrics say about one request. Texts are never logged."""

    def __init__(self, scope: Scope) -> None:
        sent = (_header(scope, b"x-request-id") or "")[:MAX_ID_LENGTH]
        self.id = sent if sent.isprintable() and sent.isascii() and sent else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id
        self.scope = scope
        self.started = time.monotonic()
        self.status = 0

    def sending(self, send: Send) -> Send:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.id.encode())]
            await send(message)

        return noted

    def finish(self, metrics: ServeMetrics) -> None:
        """Log and count the request."""
        seconds = time.monotonic() - self.started
        route = getattr(self.scope.get("route"), "path", "other")
        status = str(self.status or 499)  # the client left before an answer
        metrics.requests.labels(route, status).inc()
        metrics.seconds.labels(route).observe(seconds)
        values: dict[str, Any] = {
            "request_id": self.id,
            "method": self.scope["method"],
            "route": route,
            "status": int(status),
            "ms": round(1000 * seconds, 2),
            "client": (self.scope.get("client") or [None])[0],
        }
        LOG.info("request", extra={"fields": values})


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        values = {"time": round(record.created, 3), "level": record.levelname.lower(), "message": record.getMessage()}
        values |= getattr(record, "fields", {})
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=True)


async def _body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the client left before its body arrived.", "Disconnected")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _body_too_large(limit)
        if not message.get("more_body", False):
            return b"".join(parts)


def _body_too_large(limit: int) -> Refused:
    message = f"the body has more than {limit:,} bytes, the limit of this server. Send it in parts."
    return Refused(413, message, "TooLarge", Connection="close")


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name), None)
