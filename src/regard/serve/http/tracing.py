"""A span of OpenTelemetry for each request, where it is installed. Without its SDK, spans are not recorded."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import Scope


def new_tracer() -> Any | None:
    """The tracer of this server; None without OpenTelemetry."""
    if importlib.util.find_spec("opentelemetry") is None:
        return None
    return importlib.import_module("opentelemetry.trace").get_tracer("regard.serve")


@contextmanager
def request_span(tracer: Any | None, scope: Scope) -> Iterator[Any | None]:
    """A span that is the current one while a request is answered, below the one that `traceparent` names."""
    if tracer is None:
        yield None
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    parent = importlib.import_module("opentelemetry.propagate").extract(headers)
    kind = importlib.import_module("opentelemetry.trace").SpanKind.SERVER
    with tracer.start_as_current_span(scope["method"], context=parent, kind=kind) as span:
        yield span


def describe_span(span: Any | None, values: dict[str, Any]) -> None:
    """Name a span by its route, and add what the log says about the request."""
    if span is None:
        return
    span.update_name(f"{values['method']} {values['route']}")
    span.set_attribute("http.request.method", values["method"])
    span.set_attribute("http.route", values["route"])
    span.set_attribute("http.response.status_code", values["status"])
    span.set_attribute("regard.request_id", values["request_id"])
