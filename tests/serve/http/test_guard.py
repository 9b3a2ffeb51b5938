from __future__ import annotations

import json
import logging

import pytest
from tests.serve.helpers import client_of

from regard.serve.api_keys import ApiKeys
from regard.serve.http.guard import JsonFormatter


def test_limits_of_size() -> None:
    with client_of("bert", max_body_bytes=200, max_texts=3, max_header_bytes=1000) as client:
        response = client.post("/predict", json={"text": "x" * 300})
        assert (response.status_code, response.json()["error_type"]) == (413, "TooLarge")
        chunked = client.post("/predict", content=(b"x" * 50 for _ in range(10)))
        assert chunked.status_code == 413
        assert client.post("/predict", json={"texts": ["a"] * 4}).status_code == 413
        assert client.get("/info", headers={"X-Long": "x" * 2000}).status_code == 431
        assert client.post("/predict", json={"text": "a film"}).status_code == 200


def test_limits_of_tokens() -> None:
    with client_of("bert", max_text_tokens=20, max_request_tokens=40, max_queue_tokens=40) as client:
        assert client.post("/predict", json={"text": "film " * 30}).status_code == 413
        assert (
            client.post("/predict", json={"texts": ["good film " * 6] * 1 + ["bad film " * 8] * 1}).status_code == 200
        )
        assert client.post("/predict", json={"texts": [f"{'film ' * 15}{w}" for w in "abc"]}).status_code == 413


def test_keys() -> None:
    with client_of("bert", keys=ApiKeys(["one-long-key", "other-long-key"])) as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            response = client.post("/predict", json={"text": "a"}, headers=headers)
            assert response.status_code == 401
            assert response.json()["error_type"] == "Unauthorized"
        good = {"Authorization": "Bearer other-long-key"}
        assert client.post("/predict", json={"text": "a"}, headers=good).status_code == 200
        assert client.get("/info").status_code == 401
        assert client.get("/health").status_code == client.get("/ready").status_code == 200


def test_every_request_has_an_id_and_a_line_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with client_of("bert") as client, caplog.at_level(logging.INFO, "regard.serve"):
        mine = client.post("/predict", json={"text": "a secret"}, headers={"X-Request-ID": "abc"})
        other = client.get("/nothing")
    assert mine.headers["X-Request-ID"] == "abc"
    assert len(other.headers["X-Request-ID"]) == 32
    assert other.json()["error_type"] == "NotFound"
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "regard.serve"]
    assert [(line["request_id"], line["route"], line["status"]) for line in lines] == [
        ("abc", "/predict", 200),
        (other.headers["X-Request-ID"], "other", 404),
    ]
    assert "secret" not in str(lines)


def test_other_sites_get_no_permission() -> None:
    with client_of("bert") as client:
        response = client.post("/predict", json={"text": "a"}, headers={"Origin": "https://example.com"})
        assert "access-control-allow-origin" not in response.headers
