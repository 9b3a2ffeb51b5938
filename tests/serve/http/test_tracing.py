from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.serve.helpers import client_of

from regard.serve.http import guard
from regard.serve.http.tracing import add_step_spans, describe_span, new_tracer, request_span


class Span:
    def __init__(self, name: str, start: int = 0) -> None:
        self.name = name
        self.times = (start, 0)
        self.attributes: dict[str, Any] = {}

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def end(self, *, end_time: int) -> None:
        self.times = (self.times[0], end_time)


class Tracer:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    @contextmanager
    def start_as_current_span(self, name: str, **_: Any) -> Iterator[Span]:
        yield self.start_span(name, start_time=0)

    def start_span(self, name: str, *, start_time: int) -> Span:
        self.spans.append(Span(name, start_time))
        return self.spans[-1]


def test_a_request_is_a_span_with_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.trace", reason="opentelemetry-api is not installed")
    tracer = Tracer()
    monkeypatch.setattr(guard, "new_tracer", lambda: tracer)
    with client_of("bert") as client:
        client.post("/predict", json={"texts": ["a film", "a dull film"]}, headers={"X-Request-ID": "abc"})
    request, tokenize, queue, run = tracer.spans
    assert request.name == "POST /predict"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["regard.request_id"] == "abc"
    assert [span.name for span in (tokenize, queue, run)] == ["tokenize", "queue", "run"]
    assert tokenize.attributes == {"regard.texts": 2}
    assert 0 < tokenize.times[0] <= tokenize.times[1] <= run.times[0] + 1000 < run.times[1] + 1000


def test_steps_span_all_texts() -> None:
    tracer = Tracer()
    add_step_spans(tracer, [{"tokenize": (1.0, 2.0), "run": (3.0, 4.0)}, {"tokenize": (1.0, 2.0), "run": (5.0, 6.0)}])
    assert [(span.name, span.times) for span in tracer.spans] == [
        ("tokenize", (10**9, 2 * 10**9)),
        ("queue", (2 * 10**9, 5 * 10**9)),
        ("run", (3 * 10**9, 6 * 10**9)),
    ]
    add_step_spans(tracer, [{}])  # such as an answer from the cache
    assert len(tracer.spans) == 3


@pytest.mark.parametrize("missing", ["opentelemetry.sdk", "opentelemetry"])
def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def find_spec(name: str) -> None:
        if missing == "opentelemetry":
            raise ModuleNotFoundError

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    assert new_tracer() is None
    add_step_spans(None, [])
    with request_span(None, {"headers": [], "method": "GET"}) as span:
        describe_span(span, {})
