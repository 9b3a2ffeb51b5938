"""The local server of the page, from the standard library alone.

It answers on 127.0.0.1 only, refuses requests that other sites send through the browser (by Host and Origin), and needs
a token when it is bound to another address.
"""

from __future__ import annotations

import hmac
import secrets
import sys
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from regard.errors import InputError
from regard.look.api import API, HEADERS, MAX_BODY, VIEW, LookApi, LookResponse, failure

LOCAL = ("127.0.0.1", "localhost", "::1")
COOKIE = "regard_token"
SECONDS = 30  # a client may take for its request


class LookServer(ThreadingHTTPServer):
    """Serves one `LookApi`. `url` opens the page; port 0 takes a free one."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, api: LookApi, *, host: str = "127.0.0.1", port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise InputError(f"port {port} does not exist; expected 0 to 65535.")
        self.api = api
        self.token = None if host in LOCAL else secrets.token_urlsafe(24)
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise InputError(
                f"port {port} of {host} cannot be used ({error.strerror or error}). Choose another with --port, or 0 "
                "for any free one."
            ) from error

    @property
    def url(self) -> str:
        host, port = str(self.server_address[0]), self.server_address[1]
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}/" + ("" if self.token is None else f"?token={self.token}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection, such as a tab that is closed, is no error to print."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def allowed_hosts(self) -> set[str]:
        """Values of the Host header that are this server; any other came from a name that someone else controls."""
        port = self.server_address[1]
        names = {"127.0.0.1", "localhost", "[::1]", str(self.server_address[0])}
        return {f"{name}:{port}" for name in names}


class _Handler(BaseHTTPRequestHandler):
    server: LookServer
    protocol_version = "HTTP/1.1"
    server_version = "regard"
    sys_version = ""
    timeout = SECONDS

    def do_GET(self) -> None:
        self._respond(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            self._send(failure(411, "the request does not say how long it is.", "LengthRequired"))
        elif int(length) > MAX_BODY:
            self.close_connection = True
            self._send(failure(413, f"the request is longer than {MAX_BODY:,} bytes. Give a shorter text.", "TooLarge"))
        else:
            self._respond(self.rfile.read(int(length)))

    def _respond(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        refusal = self._refusal(parse_qs(parts.query).get("token", [""])[0])
        if refusal is None:
            self._send(self.server.api.handle(self.command, parts.path, body))
        else:
            self.close_connection = True
            self._send(failure(403, refusal, "Forbidden"))

    def _refusal(self, token: str) -> str | None:
        """Why this request is not answered; None if it is."""
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        if self.server.token is None:
            if host not in self.server.allowed_hosts():
                return "this page answers on this machine only; open it as http://127.0.0.1."
        elif not self._has_token(token):
            return "the address needs its token; open it as the command printed it."
        if origin is not None and origin != f"http://{host}":
            return "another site asked for this; only the page itself may."
        is_link = self.headers.get("Sec-Fetch-Mode") == "navigate" and not self.path.startswith((API, VIEW))
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not is_link:
            return "another site asked for this; only the page itself may."
        return None

    def _has_token(self, token: str) -> bool:
        assert self.server.token is not None
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        sent = token or ("" if cookie is None else cookie.value)
        return hmac.compare_digest(sent.encode(), self.server.token.encode())

    def _send(self, response: LookResponse) -> None:
        self.send_response(HTTPStatus(response.status))
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if self.server.token is not None and response.status == HTTPStatus.OK:
            self.send_header("Set-Cookie", f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/")
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: they hold the texts."""
