"""The short way gives the same answers and errors as FastAPI."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.helpers import table_of

from regard.serve.http import routes
from regard.serve.http.app import create_app
from regard.serve.http.direct import DirectRoutes, direct_routes

BODIES: list[Any] = [
    b'{"text": "a film"}',
    b'{"text": "caf\\u00e9 \xe2\x82\xac"}',
    b'{"text": "\\ud800"}',
    b'{"texts": ["a film", ["a", "b"]]}',
    b'{"text": "a", "text": "a film"}',
    b'{"text": "a film", "abstain": 1}',
    b'{"text": "a film", "abstain": NaN}',
    b'{"text": "a film", "abstain": "0.5"}',
    b'{"text": 5}',
    b'{"txt": "a"}',
    b"{",
    b"[]",
    b"null",
    b"",
    b"\xff",
    '{"text": "a film"}'.encode("utf-16"),
    b'{"text": "a", "model": "none"}',
    b'{"text": " "}',
    b"[" * 5000,
    b'{"text": "a film", "abstain": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_answers_and_errors_are_those_of_fastapi(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Content-Type": "application/json"}
    with table_of("bert") as table:
        short, other = create_app(table), create_app(table)
        other.user_middleware = [one for one in other.user_middleware if one.cls is not DirectRoutes]
        results = []
        for app in (short, other):
            with TestClient(app, raise_server_exceptions=False) as client:
                answer = client.post("/predict", content=body, headers=headers)
                results.append((answer.status_code, answer.content))
        assert results[0] == results[1]


def test_which_routes_are_direct() -> None:
    direct = direct_routes(routes.router.routes)
    assert {"/predict", "/embed", "/v1/embeddings", "/generate"} <= direct.keys()


def test_a_direct_request_is_counted_by_its_route() -> None:
    with table_of("bert") as table, TestClient(create_app(table)) as client:
        client.post("/predict", json={"text": "a film"})
        assert 'regard_requests_total{route="/predict",status="200"} 1.0' in client.get("/metrics").text
