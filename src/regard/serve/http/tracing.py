"""Spans of OpenTelemetry for each request and its steps, where its SDK is installed, which records them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from starlette.types import Scope

from regard.serve.served import Times

TRACER = "regard.tracer"  # where a request has it
NANOSECONDS = 1_000_000_000


def new_tracer() -> Any | None:
    """The tracer of this server; None without the SDK of OpenTelemetry, whose API alone records nothing."""
    try:
        if importlib.util.find_spec("opentelemetry.sdk") is None:
            return None
    except ModuleNotFoundError:  # not even the API
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


def add_step_spans(tracer: Any | None, times: Sequence[Times]) -> None:
    """Spans below the current one: "tokenize", "queue" and "run", each from its first text to its last."""
    if tracer is None:
        return
    tokenized = [one["tokenize"] for one in times if "tokenize" in one]
    run = [one["run"] for one in times if "run" in one]
    queued = [(one["tokenize"][1], one["run"][0]) for one in times if "tokenize" in one and "run" in one]
    for name, spans in (("tokenize", tokenized), ("queue", queued), ("run", run)):
        if spans:
            start, end = min(span[0] for span in spans), max(span[1] for span in spans)
            span = tracer.start_span(name, start_time=int(NANOSECONDS * start))
            span.set_attribute("regard.texts", len(spans))
            span.end(end_time=int(NANOSECONDS * end))


def describe_span(span: Any | None, values: dict[str, Any]) -> None:
    """Name a span by its route, and add what the log says about the request."""
    if span is None:
        return
    span.update_name(f"{values['method']} {values['route']}")
    span.set_attribute("http.request.method", values["method"])
    span.set_attribute("http.route", values["route"])
    span.set_attribute("http.response.status_code", values["status"])
    span.set_attribute("regard.request_id", values["request_id"])
