"""The local server: who may ask, and what is refused."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.look.models import KINDS, TEXT, api

from regard.errors import InputError
from regard.look.api import MAX_BODY
from regard.look.server import LookServer


@pytest.fixture(scope="module")
def server() -> Iterator[LookServer]:
    with LookServer(api(KINDS["encoder"]())) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def send(server: LookServer, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any, Any]:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body or None, {"Host": f"127.0.0.1:{port}"} | named)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, response.headers, content


def test_page_and_api(server: LookServer) -> None:
    status, headers, body = send(server, "GET", "/")
    assert status == 200
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    status, _, body = send(server, "POST", "/api/read", json.dumps({"text": TEXT}).encode())
    assert status == 200
    assert json.loads(body)["tokens"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8000"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_foreign_requests_are_refused(server: LookServer, headers: dict[str, str]) -> None:
    status, _, body = send(server, "POST", "/api/read", b'{"text": "a"}', **headers)
    assert status == 403
    assert json.loads(body)["error_type"] == "Forbidden"


def test_a_link_from_elsewhere_opens_the_page(server: LookServer) -> None:
    for path, status in (("/", 200), ("/api/page", 403)):
        assert send(server, "GET", path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == status


def test_limits_of_a_request(server: LookServer) -> None:
    assert send(server, "POST", "/api/read", b"", Content_Length=str(MAX_BODY + 1))[0] == 413
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("POST", "/api/read")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


def test_other_addresses_need_the_token() -> None:
    with LookServer(api(KINDS["encoder"]()), host="0.0.0.0") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        assert server.token is not None
        assert send(server, "GET", "/")[0] == 403
        assert send(server, "GET", "/?token=wrong")[0] == 403
        status, headers, _ = send(server, "GET", f"/?token={server.token}")
        assert status == 200
        cookie = headers["Set-Cookie"].split(";")[0]
        assert "HttpOnly" in headers["Set-Cookie"]
        assert send(server, "GET", "/app.js", Cookie=cookie)[0] == 200
        assert send(server, "GET", "/app.js", Cookie="regard_token=x")[0] == 403
        server.shutdown()
        thread.join()


def test_a_closed_connection_is_no_error(server: LookServer, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
        client.sendall(b"GET / HT")
    assert send(server, "GET", "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_ports_that_cannot_be_used(server: LookServer) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        LookServer(server.api, port=server.server_address[1], host="203.0.113.7")
    with pytest.raises(InputError, match="port 70000 does not exist"):
        LookServer(server.api, port=70000)
