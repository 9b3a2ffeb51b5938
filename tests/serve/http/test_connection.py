"""Bytes on a real socket against uvicorn with our protocol."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from tests.serve.helpers import table_of, until

from regard.serve.http.app import create_app
from regard.serve.http.connection import limited_protocol


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


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """The status and body of an answer after which the connection is closed."""
    connection.settimeout(10)
    data = b""
    while part := connection.recv(65536):
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def test_slow_headers_are_cut_off(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(b"GET /ready HT")
        status, body = answer(connection)
        assert (status, body["error_type"]) == (408, "SlowHeaders")
    with connect(port) as connection:  # sends nothing at all
        assert connection.recv(100) == b""
    with connect(port) as connection:  # the second request of a connection
        connection.sendall(b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in connection.recv(10_000)
        connection.sendall(b"GET /rea")
        assert answer(connection)[0] == 408


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_large_headers_have_an_answer(port: int, size: int) -> None:
    with connect(port) as connection:
        connection.sendall(b"GET /ready HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * size)
        assert answer(connection)[0] == 431


def test_a_large_body_has_an_answer_while_it_is_sent(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
        for _ in range(30):
            connection.sendall(b"x" * 100_000)
        assert answer(connection)[0] == 413


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http(port: int, data: bytes) -> None:
    with connect(port) as connection:
        connection.sendall(data)
        status, body = answer(connection)
        assert (status, body["error_type"]) == (400, "InvalidHTTP")


def test_too_many_connections(port: int) -> None:
    time.sleep(0.05)  # those of other tests are closed
    others = [connect(port) for _ in range(3)]
    for other in others:
        other.sendall(b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b" 200 " in other.recv(10_000)
    with connect(port) as connection:
        status, body = answer(connection)
        assert (status, body["error_type"]) == (503, "TooManyConnections")
    for other in others:
        other.close()
