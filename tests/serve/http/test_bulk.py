from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.helpers import CONTEXT, client_of, tiny


def ask(client: TestClient, lines: list[Any], query: str = "") -> list[dict[str, Any]]:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    parts = (body[start : start + 1000] for start in range(0, len(body), 1000))
    response = client.post(f"/bulk{query}", content=parts)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def test_every_line_is_answered_in_order() -> None:
    texts = [f"{CONTEXT} {chr(97 + number % 26)} {number % 7}" for number in range(700)]
    with client_of("bert", max_body_bytes=2000, max_queue_tokens=300, max_request_tokens=300) as client:
        results = ask(client, texts)
    assert [result["index"] for result in results] == list(range(700))
    assert [result["answer"] for result in results] == [answer.json() for answer in tiny("bert").predict(texts)]


def test_settings_of_the_route() -> None:
    with client_of("bert") as client:
        (result,) = ask(client, ["a film"], "?route=embed&normalize=true&pooling=mean&layer=0")
        assert result["answer"]["embedding"] == pytest.approx(
            tiny("bert").embed(["a film"], layer=0, pooling="mean", normalize=True)[0].tolist()
        )
        for query, word in (
            ("normalise=true", "no setting"),
            ("normalize=2", "normalize"),
            ("pooling=none", "pooling"),
        ):
            response = client.post(f"/bulk?route=embed&{query}", content=b'"a film"')
            assert word in response.text


def test_a_bad_line_fails_alone() -> None:
    with client_of("bert") as client:
        results = ask(client, ["a film", 3, " ", "a film"])
        raw = client.post("/bulk?route=embed", content=b'"a film"\n\nno json\n"a film"').text.splitlines()
        assert client.post("/bulk?route=nothing", content=b"").status_code == 422
        assert client.post("/bulk?model=nothing", content=b"").status_code == 404
        assert ask(client, []) == []
    assert ["error" in result for result in results] == [False, True, True, False]
    assert ["error" in json.loads(line) for line in raw] == [False, True, False]
