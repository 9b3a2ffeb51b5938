"""One connection: limits before a request is complete, and an answer that arrives where the connection is closed."""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serve.http.problems import problem

LINGER_SECONDS = 2.0  # a client may go on sending after it was refused; closing at once would reset the connection
MAX_PENDING = 64 << 10  # bytes that are collected before they are sent
COMPLETE = (h11.IDLE, h11.DONE, h11.CLOSED, h11.MUST_CLOSE)  # states of a client that sends nothing more


class LingeringTransport:
    """A transport that ends its own side first where the client still sends, and closes a little later.

    What is written in one step of the event loop is sent at once: the head of an answer and its body are one packet.
    """

    def __init__(self, transport: asyncio.Transport, connection: h11.Connection) -> None:
        self.transport = transport
        self.connection = connection
        self.ended = False
        self.loop = asyncio.get_running_loop()
        self.pending = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def is_closing(self) -> bool:
        return self.ended or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        if self.is_closing():
            return
        if not self.pending:
            self.loop.call_soon(self.flush)
        self.pending += data
        if len(self.pending) > MAX_PENDING:
            self.flush()

    def flush(self) -> None:
        """Send what was collected."""
        if self.pending and not self.transport.is_closing():
            self.transport.write(bytes(self.pending))
        self.pending.clear()

    def close(self) -> None:
        if self.is_closing():
            return
        self.flush()
        if self.connection.their_state in COMPLETE or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.ended = True
        self.transport.resume_reading()
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol with limits of connections and of the time for headers, and errors as JSON."""

    max_sockets = 2000
    header_seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.header_timer: asyncio.TimerHandle | None = None
        super().connection_made(LingeringTransport(transport, self.conn))  # type: ignore[arg-type]
        if len(self.connections) > self.max_sockets:
            self.refuse(503, "too many connections are open. Try again in a moment.", "TooManyConnections")
        else:
            self.limit_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.stop_timer()
        elif self.header_timer is None and self.timeout_keep_alive_task is None:
            self.limit_headers()

    def limit_headers(self) -> None:
        """Close the connection unless the headers of a request arrive in time."""
        self.header_timer = self.loop.call_later(self.header_seconds, self.headers_late)

    def stop_timer(self) -> None:
        if self.header_timer is not None:
            self.header_timer.cancel()
            self.header_timer = None

    def headers_late(self) -> None:
        if self.conn.trailing_data[0]:
            self.refuse(408, "the headers did not arrive in time.", "SlowHeaders")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what is not HTTP, while it handles the error of h11, which has a better status."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            self.refuse(status, "the headers are larger than the limit of this server.", "TooLarge")
        else:
            self.refuse(status, "the request is not HTTP/1.1.", "InvalidHTTP")

    def refuse(self, status: int, message: str, kind: str) -> None:
        """Answer without a request, and close the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # what is being computed has no one who reads it
            self.cycle.message_event.set()
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            response = problem(status, message, kind, {"Connection": "close", "Retry-After": "1"})
            lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
            lines += [name + b": " + value for name, value in response.raw_headers]
            self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + bytes(response.body))
        self.transport.close()


def limited_protocol(*, max_sockets: int, header_seconds: float) -> type[LimitedProtocol]:
    """The protocol with these limits, as uvicorn takes it."""
    values = {"max_sockets": max_sockets, "header_seconds": header_seconds}
    return type("LimitedProtocol", (LimitedProtocol,), values)
