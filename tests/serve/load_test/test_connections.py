from __future__ import annotations

import asyncio

import pytest
from tests.serve.load_test.helpers import answering

from regard.errors import InputError
from regard.serve.load_test.connections import AsyncConnections


def test_answers_of_every_kind() -> None:
    async def ask(url: str) -> None:
        connections = AsyncConnections(url, {"X-A": "b"})
        assert await connections.post("/x", b"body") == (200, b"body")
        assert await connections.post("/chunked", b"more") == (200, b"more")
        assert len(connections.idle) == 1
        connections.idle[0][1].close()  # closed in the meantime
        assert await connections.post("/close", b"body") == (200, b"body")
        assert connections.idle == []
        await asyncio.gather(*(connections.post("/x", b"body") for _ in range(5)))
        assert len(connections.idle) == 5
        await connections.close()

    with answering() as url:
        asyncio.run(ask(url))
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(ask(url))
    with pytest.raises(InputError, match="not the address"):
        AsyncConnections("127.0.0.1:8000")
