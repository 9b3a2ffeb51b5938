"""A small HTTP client for many requests at once: one event loop, connections that stay open."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from regard.errors import InputError

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class AsyncConnections:
    """Connections to one server. `post` opens as many as are needed at once."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    idle: list[Connection] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise InputError(
                f'"{self.url}" is not the address of a server; expected one such as http://127.0.0.1:8000.'
            )
        self.host, self.port, self.prefix = parts.hostname, parts.port or 80, parts.path.rstrip("/")
        lines = [f"Host: {parts.netloc}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        self.head = "\r\n".join(lines)

    async def post(self, route: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer. Raises OSError where there is none."""
        head = f"POST {self.prefix}{route} HTTP/1.1\r\n{self.head}\r\nContent-Length: {len(body)}\r\n\r\n"
        data = head.encode() + body
        while self.idle:
            connection = self.idle.pop()
            with suppress(OSError, EOFError):  # closed by the server in the meantime
                return await self._exchange(connection, data)
        try:
            return await self._exchange(await asyncio.open_connection(self.host, self.port), data)
        except EOFError as error:
            raise ConnectionResetError("the server closed the connection") from error

    async def _exchange(self, connection: Connection, data: bytes) -> tuple[int, bytes]:
        reader, writer = connection
        try:
            writer.write(data)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            answer = await _body(reader, head)
        except BaseException:
            writer.close()
            raise
        if b"connection: close" in head:
            writer.close()
        else:
            self.idle.append(connection)
        return int(head.split(None, 2)[1]), answer

    async def close(self) -> None:
        """Close the connections."""
        for _, writer in self.idle:
            writer.close()
        self.idle.clear()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length":
            return await reader.readexactly(int(value))
    parts = []
    while size := int(await reader.readline() or b"0", 16):  # chunked
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)
