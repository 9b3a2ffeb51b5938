"""The routes about the server itself: its health, models and metrics, and loading a model again."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard._version import __version__
from regard.errors import shorten
from regard.serve.http.docs_page import docs_page
from regard.serve.http.metrics import ServeMetrics
from regard.serve.http.problems import problem
from regard.serve.http.schemas import ReloadBody
from regard.serve.model_table import ModelTable
from regard.serve.served import RequestFailed, Served
from regard.serve.settings import NotReady

router = APIRouter()
PING_SECONDS = 2.0  # for a worker to answer that it runs
INFO_SECONDS = 30.0  # what a model can do is read from its folder
PAGE_FILES = {
    "index.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "answers.js": "text/javascript",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@router.get("/", include_in_schema=False)
async def page() -> Response:
    return page_file("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def page_part(name: str) -> Response:
    return page_file(name)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    page = docs_page(request.app.openapi(), str(request.base_url))
    return Response(page, media_type="text/html", headers=PAGE_HEADERS)


def page_file(name: str) -> Response:
    """A file of the test page."""
    if name not in PAGE_FILES:
        return problem(404, f'there is no "{shorten(name, 80)}" here.', "NotFound")
    content = resources.files("regard.serve").joinpath("page", name).read_bytes()
    return Response(content, media_type=PAGE_FILES[name], headers=PAGE_HEADERS)


@router.get("/health", summary="Whether the workers of all models run")
async def health(request: Request) -> Response:
    table: ModelTable = request.app.state.table
    if table.draining:
        return JSONResponse({"status": "ok"})
    models = list(table.models.items())
    alive = await asyncio.gather(*(answers_ping(served) for _, served in models))
    dead = [name for (name, _), one in zip(models, alive, strict=True) if not one]
    if dead:
        return problem(503, f"the worker of {', '.join(dead)} does not run; a new one is being started.", "WorkerDied")
    return JSONResponse({"status": "ok"})


async def answers_ping(served: Served) -> bool:
    """Whether the worker of a model answers in time that it runs."""
    try:
        return bool(await asyncio.wait_for(asyncio.wrap_future(served.ping()), PING_SECONDS))
    except (NotReady, RequestFailed, TimeoutError):
        return False


@router.get("/ready", summary="Whether requests are accepted: not while loading or shutting down")
async def ready(request: Request) -> Response:
    table: ModelTable = request.app.state.table
    if table.ready:
        return JSONResponse({"ready": True, "models": list(table.models)})
    if table.error is not None:
        return problem(503, f"a model cannot be loaded: {table.error}", "LoadFailed")
    state = "shutting down" if table.draining else "loading"
    dead = [name for name, served in list(table.models.items()) if not served.is_alive]
    if dead and not table.draining:
        state = f"starting the worker of {', '.join(dead)} again"
    return problem(503, f"the server is {state}.", "NotReady", {"Retry-After": "1"})


@router.get("/info", summary="The models: family, task, size, engine, routes and queue")
async def info(request: Request) -> dict[str, Any]:
    table: ModelTable = request.app.state.table
    models = [served.info() for served in table.models.values()]
    values = [await asyncio.wait_for(asyncio.wrap_future(each), INFO_SECONDS) for each in models]
    return {"version": __version__, "ready": table.ready, "models": values}


@router.get("/v1/models", summary="The names of the models, as OpenAI's API has them")
async def models(request: Request) -> dict[str, Any]:
    table: ModelTable = request.app.state.table
    data = [{"id": name, "object": "model", "owned_by": "regard"} for name in table.models]
    return {"object": "list", "data": data}


@router.post("/models/reload", summary="Load a model again from its folder, without losing a request")
async def reload(request: Request, body: ReloadBody) -> dict[str, Any]:
    table: ModelTable = request.app.state.table
    names = await asyncio.to_thread(table.reload, body.model)
    return {"reloaded": names}


@router.get("/metrics", summary="Numbers for Prometheus")
async def metrics(request: Request) -> Response:
    table: ModelTable = request.app.state.table
    numbers: ServeMetrics = request.app.state.metrics
    numbers.ready.set(table.ready)
    numbers.restarts.set(table.restarts)
    for name, served in list(table.models.items()):
        numbers.queued.labels(name).set(served.queued_tokens)
    return Response(numbers.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
