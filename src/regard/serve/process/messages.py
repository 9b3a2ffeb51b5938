"""Messages between two processes: JSON with its length in front."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("!Q")
CHUNK = 1 << 20


def send_message(connection: socket.socket, message: Any) -> None:
    """Send a message. Raises OSError if the other side has ended."""
    body = json.dumps(message, separators=(",", ":")).encode()
    connection.sendall(HEADER.pack(len(body)) + body)


def read_message(connection: socket.socket) -> Any:
    """The next message. Raises EOFError if the other side has ended."""
    (size,) = HEADER.unpack(_read(connection, HEADER.size))
    return json.loads(_read(connection, size))


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = connection.recv(min(CHUNK, size - len(parts)))
        except OSError as error:
            raise EOFError from error
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
