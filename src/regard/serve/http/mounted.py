"""A page of another package under a prefix of the server: it is asked with method, path and body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from regard.serve.http.problems import problem


@dataclass(frozen=True)
class PageAnswer:
    """What a page answers to one request."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Page = Callable[[str, str, bytes], PageAnswer]  # method, path and body; runs in a thread


def mount_page(app: FastAPI, prefix: str, page: Page) -> None:
    """Answer all requests below `prefix` with a page."""

    async def redirect() -> Response:
        return RedirectResponse(f"{prefix}/")  # its files have relative addresses

    async def answer(request: Request, path: str) -> Response:
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            return problem(403, "another site asked for this; only the page itself may.", "Forbidden")
        result = await asyncio.to_thread(page, request.method, f"/{path}", await request.body())
        return Response(result.body, result.status, dict(result.headers), media_type=result.content_type)

    app.add_api_route(prefix, redirect, methods=["GET"], include_in_schema=False)
    app.add_api_route(f"{prefix}/{{path:path}}", answer, methods=["GET", "POST"], include_in_schema=False)
