"""Many inputs as JSON lines: read while they are answered, a bounded number at a time, in order."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from regard.errors import InputError, did_you_mean
from regard.serve.http.problems import problem_of
from regard.serve.model_table import OPERATIONS, ModelTable
from regard.serve.model_worker import Answered
from regard.serve.settings import NotReady, QueueFull, TooLarge

AHEAD = 256  # lines that are read before the first of them is answered
Waiting = deque[tuple[int, Answered | BaseException]]


class LinesResponse(Response):
    """Sends lines as they are ready. It leaves the incoming messages to the reader of the body."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self.lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for line in self.lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})
        except ClientDisconnect:
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def answer_lines(request: Request, table: ModelTable, model: str | None, kind: str) -> Response:
    """A line for each line of the body: {"index", "answer"}, or {"index", "error", "error_type"}."""
    if kind not in OPERATIONS:
        raise InputError(f'"route" is "{kind[:80]}".{did_you_mean(kind, OPERATIONS)}')
    table.get(model)
    return LinesResponse(_answers(request, table, model, kind))


async def _answers(request: Request, table: ModelTable, model: str | None, kind: str) -> AsyncIterator[bytes]:
    waiting: Waiting = deque()
    try:
        index = 0
        async for line in body_lines(request, table.limits.max_body_bytes, table.limits.request_seconds):
            if line.strip():
                while (result := await _submitted(table, model, kind, line)) is None:
                    if waiting:  # the queue is full: wait for an own answer first
                        yield await _line(waiting.popleft(), table.limits.request_seconds)
                    else:
                        await asyncio.sleep(0.05)
                waiting.append((index, result))
                index += 1
            while waiting and (len(waiting) >= AHEAD or _is_done(waiting[0][1])):
                yield await _line(waiting.popleft(), table.limits.request_seconds)
        while waiting:
            yield await _line(waiting.popleft(), table.limits.request_seconds)
    finally:
        for _, result in waiting:
            if not isinstance(result, BaseException):
                result.cancel()


async def _submitted(table: ModelTable, model: str | None, kind: str, line: bytes) -> Answered | BaseException | None:
    """The future of a line, or its error; None while the queue is full."""
    try:
        item = json.loads(line)
        _, (future,) = await asyncio.to_thread(table.submit, model, kind, [item])
    except QueueFull:
        return None
    except (ValueError, RecursionError) as error:
        return error if isinstance(error, InputError) else InputError(f"the line is not JSON ({error!s:.100}).")
    except Exception as error:  # the answer to this line
        return error
    return future


def _is_done(result: Answered | BaseException) -> bool:
    return isinstance(result, BaseException) or result.done()


async def _line(numbered: tuple[int, Answered | BaseException], seconds: float) -> bytes:
    index, result = numbered
    values: dict[str, Any]
    try:
        if isinstance(result, BaseException):
            raise result
        values = {"answer": (await asyncio.wait_for(asyncio.wrap_future(result), seconds)).answer}
    except TimeoutError:
        values = json.loads(bytes(problem_of(NotReady(f"it took longer than {seconds:g} seconds.")).body))
    except Exception as error:  # the answer to this line
        values = json.loads(bytes(problem_of(error).body))
    return json.dumps({"index": index, **values}, ensure_ascii=False).encode() + b"\n"


async def body_lines(request: Request, limit: int, seconds: float) -> AsyncIterator[bytes]:
    """The lines of a body of any size, none longer than `limit` bytes, each part within `seconds`."""
    rest = b""
    parts = request.stream().__aiter__()
    while True:
        try:
            part = await asyncio.wait_for(anext(parts), seconds)
        except (StopAsyncIteration, TimeoutError):
            break
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > limit:
            raise TooLarge(f"a line has more than {limit:,} bytes.")
    if rest:
        yield rest
