"""The application: its routes, errors and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from regard._version import __version__
from regard.serve.api_keys import ApiKeys
from regard.serve.http import routes, status_routes
from regard.serve.http.direct import DirectRoutes, direct_routes
from regard.serve.http.guard import Guard
from regard.serve.http.metrics import ServeMetrics
from regard.serve.http.mounted import Page, mount_page
from regard.serve.http.problems import add_handlers
from regard.serve.model_table import ModelTable

DESCRIPTION = """Answers of models: classes, entities, answers to questions, vectors, filled masks, translations, text.

Long texts are split into windows, never cut: every answer has `truncated` and `windows`. Offsets are code points, the
end exclusive. Errors are `{"error": words, "error_type": name}`."""
# Spans and logs of FastAPI's own, in newer versions: its log has the texts of requests.
TELEMETRY: Any = {"tracing": False, "operation_spans": False, "logs": False}


def create_app(
    table: ModelTable,
    *,
    keys: ApiKeys | None = None,
    metrics: ServeMetrics | None = None,
    pages: Mapping[str, Page] | None = None,
) -> FastAPI:
    """The server as an ASGI application for the models of a table; `pages` are further ones, by prefix."""
    numbers = metrics or ServeMetrics()
    app = FastAPI(
        title="regard",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        telemetry=TELEMETRY,
    )
    app.state.table = table
    app.state.metrics = numbers
    app.include_router(routes.router)
    app.include_router(status_routes.router)
    for prefix, page in (pages or {}).items():
        mount_page(app, prefix, page)
    add_handlers(app)
    app.add_middleware(DirectRoutes, routes=direct_routes(routes.router.routes))
    app.add_middleware(Guard, table=table, keys=keys or ApiKeys(), metrics=numbers)
    return app
