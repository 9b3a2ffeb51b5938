from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.answers import assert_same
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
    assert_same([result["answer"] for result in results], [answer.json() for answer in tiny("bert").predict(texts)])


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


def test_errors_name_no_index_of_their_own_and_stay_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with client_of("bert") as client:
        results = ask(client, ["a film", 3, ""]) + ask(client, [["secret"], ""], "?route=embed")
        gc.collect()  # asyncio logs errors that no one has read
    errors = [result["error"] for result in results[1:]]
    assert errors[0].startswith("the input is 3 (int)")
    assert errors[1].startswith("the input holds an empty text")
    assert errors[2].startswith("the text is ['secret']")
    assert errors[3].startswith("the text is empty")
    assert not any(record.levelname == "ERROR" for record in caplog.records)


def test_a_text_may_be_an_object_with_its_name() -> None:
    with client_of("bert") as client:
        for route in ("predict", "embed", "explain"):
            plain, named = ask(client, ["a film", {"text": "a film"}], f"?route={route}")
            assert plain["answer"] == named["answer"]
        for line in ask(client, [3, None, {"a": "b"}, [["a"]], []], "?route=explain"):
            assert line["error_type"] == "InputError"
