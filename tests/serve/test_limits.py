"""What every request passes first: limits, API keys, its id and its line in the log; and limits of time."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.serve.helpers import client_of

from regard.errors import InputError
from regard.serve.api_keys import ApiKeys, check_address, read_api_keys
from regard.serve.http.answering import ClientLeft, wait_for
from regard.serve.http.guard import JsonFormatter
from regard.serve.served import Computed
from regard.serve.settings import NotReady, ServeLimits


def test_limits_of_size_and_tokens() -> None:
    limits: dict[str, Any] = {"max_body_bytes": 600, "max_texts": 3, "max_header_bytes": 1000}
    limits |= {"max_text_tokens": 20, "max_request_tokens": 40, "max_queue_tokens": 40}
    with client_of("bert", **limits) as client:
        for body, status in (
            ({"text": "x" * 700}, 413),
            ({"texts": ["a"] * 4}, 413),
            ({"text": "film " * 30}, 413),
            ({"texts": [f"{'film ' * 15}{word}" for word in "abc"]}, 413),
            ({"texts": ["good film " * 6, "bad film " * 8]}, 200),
        ):
            response = client.post("/predict", json=body)
            assert response.status_code == status, response.text
            assert status == 200 or response.json()["error_type"] == "TooLarge"
        assert client.post("/predict", content=(b"x" * 50 for _ in range(20))).status_code == 413
        assert client.get("/info", headers={"X-Long": "x" * 2000}).status_code == 431
        assert client.post("/tokenize", json={"text": ""}).json()["answers"][0]["tokens"] == ["[CLS]", "[SEP]"]
        assert client.post("/tokenize", json={"text": "soup " * 30}).status_code == 413


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_texts": 0}, "max_texts is 0, expected at least 1"),
        ({"max_queue_tokens": 10}, "could never be accepted"),
    ],
)
def test_wrong_limits(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ServeLimits(**limits)  # type: ignore[arg-type]


def test_every_request_has_an_id_and_a_line_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with client_of("bert") as client, caplog.at_level(logging.INFO, "regard.serve"):
        headers = {"X-Request-ID": "abc", "Origin": "https://example.com"}
        mine = client.post("/predict", json={"text": "a secret"}, headers=headers)
        other = client.get("/nothing")
    assert mine.headers["X-Request-ID"] == "abc"
    assert "access-control-allow-origin" not in mine.headers
    assert len(other.headers["X-Request-ID"]) == 32
    assert other.json()["error_type"] == "NotFound"
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records if record.name == "regard.serve"]
    assert [(line["request_id"], line["route"], line["status"]) for line in lines] == [
        ("abc", "/predict", 200),
        (other.headers["X-Request-ID"], "other", 404),
    ]
    assert "secret" not in str(lines)


# API keys


def test_requests_need_a_key() -> None:
    with client_of("bert", keys=ApiKeys(["one-long-key", "other-long-key"])) as client:
        for key, status in ((None, 401), ("wrong", 401), ("other-long-key", 200)):
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            assert client.post("/predict", json={"text": "a"}, headers=headers).status_code == status
        refused = client.get("/info")
        assert (refused.status_code, refused.json()["error_type"]) == (401, "Unauthorized")
        assert client.get("/health").status_code == client.get("/ready").status_code == 200


def test_any_of_the_keys_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("# for the page\nfirst-key-1\n\nsecond-key-2\n")
    keys = read_api_keys(path)
    assert keys.accept("Bearer first-key-1")
    assert keys.accept("bearer second-key-2")
    for wrong in (None, "", "Bearer", "Bearer third", "Basic first-key-1", "first-key-1", "Bearer \udc80"):
        assert not keys.accept(wrong)
    assert ApiKeys().accept(None)


@pytest.mark.parametrize(("content", "message"), [("", "has no key"), ("short\n", "less than 8"), (None, "cannot be")])
def test_bad_files(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "keys.txt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_api_keys(path)


@pytest.mark.parametrize(
    ("host", "keys", "no_auth", "message"),
    [
        ("127.0.0.1", [], False, None),
        ("0.0.0.0", ["long-enough"], False, None),
        ("0.0.0.0", [], True, None),
        ("0.0.0.0", [], False, "--api-key-file"),
        ("0.0.0.0", ["long-enough"], True, "contradict"),
    ],
)
def test_other_addresses_need_a_key(host: str, keys: list[str], no_auth: bool, message: str | None) -> None:
    if message is None:
        check_address(host, ApiKeys(keys), no_auth=no_auth)
    else:
        with pytest.raises(InputError, match=message):
            check_address(host, ApiKeys(keys), no_auth=no_auth)


# time


def request_of(*messages: dict[str, Any]) -> Request:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(60)
        raise AssertionError

    return Request({"type": "http", "headers": []}, receive)


@pytest.mark.parametrize(
    ("messages", "seconds", "error"), [([{"type": "http.disconnect"}], 5, ClientLeft), ([], 0.01, NotReady)]
)
def test_work_that_no_one_waits_for_is_cancelled(
    messages: list[dict[str, Any]], seconds: float, error: type[Exception]
) -> None:
    future: Future[Computed] = Future()
    with pytest.raises(error):
        asyncio.run(wait_for(request_of(*messages), [future], seconds=seconds))
    assert future.cancelled()


def test_an_answer_or_an_error_ends_the_waiting() -> None:
    done: Future[Computed] = Future()
    done.set_result(Computed.of({}, 1))
    asyncio.run(wait_for(request_of(), [done], seconds=1))

    async def fail() -> None:
        future: Future[Computed] = Future()
        asyncio.get_running_loop().call_later(0.01, future.set_exception, ValueError("no"))
        await wait_for(request_of(), [done, future], seconds=5)
        assert isinstance(future.exception(), ValueError)

    asyncio.run(fail())
