"""The server on a port: bytes on a real socket, and a whole server in a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.cli.helpers import start
from tests.serve.helpers import table_of, until

import regard
from regard.errors import InputError
from regard.serve.http.app import create_app
from regard.serve.http.connection import limited_protocol
from regard.serve.listener import address, open_socket


def test_a_port_in_use() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        for port, message in ((used.getsockname()[1], "cannot be used"), (70_000, "expected 0 to 65535")):
            with pytest.raises(InputError, match=message):
                open_socket("127.0.0.1", port)
    with open_socket("127.0.0.1", 0) as listener:
        assert address(listener, "127.0.0.1") == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert address(listener, "::1").startswith("http://[::1]:")


# connections


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with table_of("bert", max_body_bytes=1000, max_header_bytes=1000) as table, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            create_app(table),
            log_config=None,
            http=limited_protocol(max_sockets=3, header_seconds=0.3),
            h11_max_incomplete_event_size=1000,
            ws="none",
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        until(lambda: server.started)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(10)


def answer(connection: socket.socket) -> tuple[int, str]:
    """The status and error type of an answer after which the connection is closed."""
    data = b""
    while part := connection.recv(65536):
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error_type"]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


HEAD = b"HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        (b"GET /ready HT", 408, "SlowHeaders"),
        (b"GET /ready " + HEAD + b"X-Long: " + b"x" * 2_000, 431, "TooLarge"),
        (b"GET /ready " + HEAD + b"X-Long: " + b"x" * 200_000, 431, "TooLarge"),
        (b"POST /predict " + HEAD + b"Content-Length: 3000000\r\n\r\n" + b"x" * 3_000_000, 413, "TooLarge"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "InvalidHTTP"),
        (b"GET / " + HEAD + b"Content-Length: x\r\n\r\n", 400, "InvalidHTTP"),
        (b"POST /predict " + HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "InvalidHTTP"),
    ],
    ids=range(7),
)
def test_what_is_refused_has_an_answer(port: int, data: bytes, status: int, kind: str) -> None:
    with connect(port) as connection:
        connection.sendall(data)
        assert answer(connection) == (status, kind)


def test_slow_connections_are_cut_off(port: int) -> None:
    with connect(port) as connection:  # sends nothing at all
        assert connection.recv(100) == b""
    with connect(port) as connection:  # the second request of a connection
        connection.sendall(b"GET /ready " + HEAD + b"\r\n")
        assert b" 200 " in connection.recv(10_000)
        connection.sendall(b"GET /rea")
        assert answer(connection)[0] == 408


def test_too_many_connections(port: int) -> None:
    time.sleep(0.05)  # those of other tests are closed
    others = [connect(port) for _ in range(3)]
    for other in others:
        other.sendall(b"GET /ready " + HEAD + b"\r\n")
        assert b" 200 " in other.recv(10_000)
    with connect(port) as connection:
        assert answer(connection) == (503, "TooManyConnections")
    for other in others:
        other.close()


# a whole server


def request(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=20
    ) as response:
        return json.load(response)


def is_ready(url: str) -> bool:
    try:
        return bool(request(f"{url}/ready")["ready"])
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return False


def until_accepted(url: str, results: list[Any]) -> None:
    """Until all four requests are in progress or answered; the question for the metrics is in progress too."""
    open_now = 0
    while open_now + len(results) < 5:
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as response:
            lines = response.read().decode().splitlines()
        open_now = int(float(next(line.split()[1] for line in lines if line.startswith("regard_requests_in_progress"))))
        if len(results) == 4:
            return


def read_log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_a_server_answers_reloads_and_drains(trained: Path, tmp_path: Path) -> None:
    log, model = tmp_path / "log", tmp_path / "reviews"
    model.symlink_to(trained)
    with log.open("w") as file:
        process = start("serve", model, "--port", 0, "--device", "cpu", "--look", "--json", err=file.fileno())
    with process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            until(lambda: is_ready(url))
            check_server(process, url, model, log)
        finally:
            process.kill()


def check_server(process: Any, url: str, model: Path, log: Path) -> None:
    texts = [f"a lovely film {number}" for number in range(20)]
    expected = [answer.json() for answer in regard.load(model, device="cpu").predict(texts)]
    assert request(f"{url}/predict", {"texts": texts})["answers"] == expected
    with urllib.request.urlopen(f"{url}/look/", timeout=20) as page:
        assert b"app.js" in page.read()
    assert request(f"{url}/look/view/page", {})["models"][0]["name"] == "reviews"
    for target, message in ((log.parent / "none", "reload failed"), (model.resolve(), "reloaded")):
        model.unlink()
        model.symlink_to(target)
        process.send_signal(signal.SIGHUP)
        until(lambda message=message: read_log(log)[-1]["message"] == message)  # type: ignore[misc]
    results: list[Any] = []

    def ask() -> None:
        results.append(request(f"{url}/predict", {"texts": texts * 20})["answers"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    until_accepted(url, results)
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(20)
    assert results == [expected * 20] * 4
    assert process.wait(20) == 0
    lines = read_log(log)
    assert sum(line.get("route") == "/predict" for line in lines) == 5
    (draining,) = [line for line in lines if line["message"] == "draining"]
    assert draining["signal"] == "SIGTERM"
    (failed,) = [line for line in lines if line["message"] == "reload failed"]
    assert "none" in failed["error"] or "reviews" in failed["error"]
    assert "traceback" not in failed
    assert lines[-1]["message"] == "stopped"
    assert "lovely" not in log.read_text()
