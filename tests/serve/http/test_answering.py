"""Limits of time, and clients that leave."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest
from starlette.requests import Request

from regard.serve.http.answering import ClientLeft, wait_for
from regard.serve.served import Computed
from regard.serve.settings import NotReady


def request_of(*messages: dict[str, Any]) -> Request:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(60)
        raise AssertionError

    return Request({"type": "http", "headers": []}, receive)


def test_done_futures_need_no_waiting() -> None:
    future: Future[Computed] = Future()
    future.set_result(Computed.of({}, 1))
    asyncio.run(wait_for(request_of(), [future], seconds=1))


def test_a_client_that_leaves_cancels_its_work() -> None:
    future: Future[Computed] = Future()
    with pytest.raises(ClientLeft):
        asyncio.run(wait_for(request_of({"type": "http.disconnect"}), [future], seconds=5))
    assert future.cancelled()


def test_the_time_of_a_request_ends() -> None:
    future: Future[Computed] = Future()
    with pytest.raises(NotReady, match="longer than"):
        asyncio.run(wait_for(request_of(), [future], seconds=0.01))
    assert future.cancelled()


def test_an_error_ends_the_waiting() -> None:
    async def fail() -> None:
        future: Future[Computed] = Future()
        asyncio.get_running_loop().call_later(0.01, future.set_exception, ValueError("no"))
        await wait_for(request_of(), [future], seconds=5)
        assert isinstance(future.exception(), ValueError)

    asyncio.run(fail())
