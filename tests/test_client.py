"""The client against a server that answers as it is told to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import regard


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ports: set[int] = set()  # noqa: RUF012  # of the connections
    statuses: list[int] = []  # noqa: RUF012  # of the next answers; 200 after them
    bodies: list[Any] = []  # noqa: RUF012
    retry_after = "0"
    leaves = False  # closes the connection after the next answer, without a header that says so

    def do_GET(self) -> None:
        self.send({"version": "1"})

    def do_POST(self) -> None:
        self.ports.add(self.client_address[1])
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append((self.path, body, self.headers["Authorization"]))
        if self.statuses:
            self.send({"error": "busy", "error_type": "QueueFull"}, self.statuses.pop(0))
        elif body.get("stream"):
            self.send(b'data: {"text": "a"}\n\ndata: {"text": "b"}\n\ndata: {"done": true}\n\n')
        else:
            values = {"embedding": [1.0], "translation": "x", "text": "y", "masks": [], "label": "good"}
            texts = body.get("texts", ["1"])
            self.send({"answers": [values if text else None for text in texts]})

    def send(self, values: Any, status: int = 200) -> None:
        data = values if isinstance(values, bytes) else json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Retry-After", self.retry_after)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection, Handler.leaves = self.leaves, False

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Handler.statuses, Handler.bodies, Handler.ports, Handler.retry_after = [], [], set(), "0"
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_methods_ask_their_routes(url: str) -> None:
    client = regard.Client(url, api_key="a-key")
    assert client.predict(["a", "b"], model="m")[1]["label"] == "good"
    assert client.embed(["a"], normalize=True) == [[1.0]]
    assert client.translate(["a"]) == ["x"]
    assert client.generate("a", max_tokens=3) == "y"
    assert client.fill("a [MASK]") == []
    assert client.answer("q", "c")["label"] == "good"
    assert client.tokenize(["a"])[0]["text"] == "y"
    assert list(client.stream("a")) == ["a", "b"]
    assert client.info() == {"version": "1"}
    assert Handler.bodies[0] == ("/predict", {"texts": ["a", "b"], "model": "m"}, "Bearer a-key")


def test_a_bad_text_with_on_error_null_is_none(url: str) -> None:
    client = regard.Client(url)
    assert client.embed(["a", ""], on_error="null") == [[1.0], None]
    assert client.translate(["", "a"], on_error="null") == [None, "x"]


@pytest.mark.parametrize(
    ("statuses", "retries", "status"), [([429, 503, 503], 5, 200), ([429, 429], 1, 429), ([422], 5, 422)]
)
def test_busy_servers_are_asked_again(url: str, statuses: list[int], retries: int, status: int) -> None:
    Handler.statuses = list(statuses)
    client = regard.Client(url, retries=retries)
    if status == 200:
        assert client.embed(["a"]) == [[1.0]]
    else:
        with pytest.raises(regard.ServerError, match="busy") as error:
            client.embed(["a"])
        assert (error.value.status, error.value.error_type) == (status, "QueueFull")
    assert Handler.statuses == []


@pytest.mark.parametrize(("retry_after", "seconds"), [("1000", 30), ("Wed, 21 Oct", 1), ("2.5", 2.5)])
def test_waiting_times_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch, retry_after: str, seconds: float) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    Handler.retry_after, Handler.statuses = retry_after, [503]
    regard.Client(url).embed(["a"])
    assert 0.75 * seconds <= waits[0] <= 1.25 * seconds


def test_a_connection_is_used_again(url: str) -> None:
    with regard.Client(url) as client:
        for _ in range(3):
            client.embed(["a"])
        Handler.statuses = [429]
        assert list(client.stream("a")) == ["a", "b"]
        assert len(Handler.ports) == 1
        Handler.leaves = True
        for _ in range(2):
            assert client.embed(["a"]) == [[1.0]]
        assert len(Handler.ports) == 2
        unread = client.stream("a")
        assert next(unread) == "a"
        unread.close()
        assert client.embed(["a"]) == [[1.0]]
        assert len(Handler.ports) == 3


def test_errors(url: str) -> None:
    with pytest.raises(regard.ServerError, match="cannot be reached"):
        regard.Client("http://127.0.0.1:9", retries=0).info()
    with pytest.raises(regard.InputError, match="not the address"):
        regard.Client("127.0.0.1:8000")
    for method in (regard.Client(url).predict, regard.Client(url).embed):
        with pytest.raises(regard.InputError, match="Write \\[text\\]"):
            method("a text")


def test_coroutines(url: str) -> None:
    async def ask() -> list[Any]:
        client = regard.AsyncClient(url, concurrency=4)
        calls: list[Any] = [client.predict(["a"]), client.embed(["a"]), client.translate(["a"]), client.generate("a")]
        calls += [client.fill("a"), client.answer("q", "c"), client.tokenize(["a"]), client.info()]
        async with client:
            return list(await asyncio.gather(*calls))

    results = asyncio.run(ask())
    assert results[1:5] == [[[1.0]], ["x"], "y", []]


def test_pieces_in_a_coroutine(url: str) -> None:
    async def ask() -> list[str]:
        async with regard.AsyncClient(url, concurrency=1) as client:
            first = await anext(client.stream("a"))  # the rest is not read
            return [first] + [piece async for piece in client.stream("a")]

    assert asyncio.run(ask()) == ["a", "a", "b"]
