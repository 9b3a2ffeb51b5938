from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.serve.helpers import client_of

from regard.serve.http import guard
from regard.serve.http.tracing import describe_span, new_tracer, request_span


class Span:
    def __init__(self) -> None:
        self.name = ""
        self.attributes: dict[str, Any] = {}

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value


class Tracer:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    @contextmanager
    def start_as_current_span(self, name: str, **_: Any) -> Iterator[Span]:
        self.spans.append(Span())
        yield self.spans[-1]


def test_a_request_is_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.trace", reason="opentelemetry-api is not installed")
    tracer = Tracer()
    monkeypatch.setattr(guard, "new_tracer", lambda: tracer)
    with client_of("bert") as client:
        client.post("/predict", json={"text": "a film"}, headers={"X-Request-ID": "abc"})
    (span,) = tracer.spans
    assert span.name == "POST /predict"
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["regard.request_id"] == "abc"
    assert new_tracer() is not None


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert new_tracer() is None
    with request_span(None, {"headers": [], "method": "GET"}) as span:
        describe_span(span, {})
