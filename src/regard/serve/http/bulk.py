"""Many inputs as JSON lines: read while they are answered, a bounded number at a time, in order."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from regard.errors import InputError, did_you_mean, shorten
from regard.serve.http.answering import of_item, submitted
from regard.serve.http.problems import problem_of
from regard.serve.http.schemas import BODIES
from regard.serve.model_table import ModelTable
from regard.serve.served import Answered, Computed, error_of
from regard.serve.settings import NotReady, QueueFull, TooLarge

AHEAD = 256  # lines that are read before the first of them is answered
RETRY_SECONDS = 0.05  # while the queue is full


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


async def answer_lines(
    request: Request, table: ModelTable, model: str | None, kind: str, options: Mapping[str, Any]
) -> Response:
    """A line for each line of the body: {"index", "answer"}, or {"index", "error", "error_type"}."""
    table.get(model)
    return LinesResponse(_answers(request, BulkRun(table, model, kind, options)))


def bulk_options(kind: str, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The settings of a route from a query: `normalize=true&pooling=mean`. Raises InputError for an unknown one."""
    if kind not in BODIES:
        raise InputError(f'"route" is "{kind[:80]}".{did_you_mean(kind, BODIES)}')
    values = {name: _value(text) for name, text in query}
    try:
        return BODIES[kind].model_validate(values).options()
    except ValidationError as error:
        first = error.errors()[0]
        name = shorten(".".join(str(part) for part in first["loc"]), 80)
        if first["type"] == "extra_forbidden":
            raise InputError(f'"{name}" is no setting of /{kind}. See GET /docs.') from error
        raise InputError(f'"{name}" is {shorten(repr(first["input"]), 80)}: {shorten(first["msg"], 200)}.') from error


def _value(text: str) -> Any:
    """A value of a query: JSON, or else a word."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@dataclass(frozen=True)
class BulkRun:
    """What is done with each line."""

    table: ModelTable
    model: str | None
    kind: str
    options: Mapping[str, Any]

    async def submit(self, line: bytes) -> Answered | BaseException:
        """The future of a line, or its error."""
        try:
            item = _item(json.loads(line))
            _, (future,) = await submitted(self.table, self.model, self.kind, [item], **self.options)
        except (ValueError, RecursionError) as error:
            return error if isinstance(error, InputError) else InputError(f"the line is not JSON ({error!s:.100}).")
        except Exception as error:  # the answer to this line
            return error
        return future

    async def answer(self, line: BulkLine) -> bytes:
        """The line of the answer. While the queue is full, the line is sent to it again."""
        seconds = self.table.limits.request_seconds
        try:
            async with asyncio.timeout(seconds):
                wait = 0.0  # at once the first time: the lines before it are answered now
                while isinstance(result := await _result(line.result), QueueFull):
                    await asyncio.sleep(wait)
                    wait = RETRY_SECONDS
                    line.result = await self.submit(line.content)
        except TimeoutError:
            line.cancel()
            result = NotReady(f"it took longer than {seconds:g} seconds.")
        start = f'{{"index":{line.index},'
        if isinstance(result, Computed):
            return f'{start}"answer":{result.text}}}\n'.encode()
        return start.encode() + bytes(problem_of(of_item(result)).body)[1:] + b"\n"


def _item(value: Any) -> Any:
    """The input of a line. A text may also be written as in the body of its route: {"text"} or {"prompt"}."""
    if isinstance(value, dict) and value.keys() in ({"text"}, {"prompt"}):
        return next(iter(value.values()))
    return value


@dataclass(eq=False)
class BulkLine:
    """A line that waits for its answer."""

    index: int
    content: bytes
    result: Answered | BaseException

    @property
    def is_done(self) -> bool:
        return isinstance(self.result, BaseException) or self.result.done()

    @property
    def was_refused(self) -> bool:
        """Whether the queue was full: it makes no sense to send more."""
        result = self.result
        if not isinstance(result, BaseException):
            return result.done() and isinstance(error_of(result), QueueFull)
        return isinstance(result, QueueFull)

    def cancel(self) -> None:
        if not isinstance(self.result, BaseException):
            self.result.cancel()


async def _result(result: Answered | BaseException) -> Computed | BaseException:
    if isinstance(result, BaseException):
        return result
    await asyncio.gather(asyncio.wrap_future(result), return_exceptions=True)  # an error that no one reads is logged
    return error_of(result) or result.result()


async def _answers(request: Request, run: BulkRun) -> AsyncIterator[bytes]:
    waiting: deque[BulkLine] = deque()
    limits = run.table.limits
    try:
        index = 0
        async for line in body_lines(request, limits.max_body_bytes, limits.request_seconds):
            if line.strip():
                waiting.append(BulkLine(index, line, await run.submit(line)))
                index += 1
            while waiting and (len(waiting) >= AHEAD or waiting[0].is_done or waiting[-1].was_refused):
                yield await run.answer(waiting.popleft())
        while waiting:
            yield await run.answer(waiting.popleft())
    finally:
        for each in waiting:
            each.cancel()


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
