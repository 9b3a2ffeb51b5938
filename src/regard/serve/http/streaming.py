"""Generated text as server-sent events: one for each piece, and one at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi.responses import Response, StreamingResponse

from regard.errors import InputError
from regard.serve.http.problems import problem_of
from regard.serve.model_table import ModelTable
from regard.serve.served import Answered, error_of
from regard.serve.settings import NotReady


async def stream_generation(table: ModelTable, model: str | None, prompts: Sequence[str], **options: Any) -> Response:
    """The events of one prompt. An error before the first piece is an ordinary answer with its status."""
    if len(prompts) != 1:
        raise InputError(f'"stream" is for one prompt; {len(prompts)} were sent.')
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[str | Answered] = asyncio.Queue()

    def put(event: str | Answered) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    served, future = table.stream(model, prompts[0], put, **options)
    future.add_done_callback(put)
    try:
        async with asyncio.timeout(table.limits.request_seconds):
            first = await events.get()
    except TimeoutError as error:
        future.cancel()
        raise NotReady(f"no text after {table.limits.request_seconds:g} seconds. Try again later.") from error
    if not isinstance(first, str) and (problem := error_of(first)) is not None:
        raise problem
    return StreamingResponse(
        _events(first, events, served.name, future, seconds=table.limits.request_seconds),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _events(
    event: str | Answered,
    events: asyncio.Queue[str | Answered],
    model: str,
    future: Answered,
    *,
    seconds: float,
) -> AsyncIterator[str]:
    try:
        async with asyncio.timeout(seconds):
            while isinstance(event, str):
                yield _event({"text": event})
                event = await events.get()
        error = error_of(event)
        if error is None:
            yield _event({"done": True, "model": model, "answer": event.result().answer})
        else:
            yield _event(json.loads(bytes(problem_of(error).body)))
    except TimeoutError:
        late = problem_of(NotReady(f"the request took longer than {seconds:g} seconds. Ask for fewer tokens."))
        yield _event(json.loads(bytes(late.body)))
    finally:  # also where the client has left
        future.cancel()


def _event(values: dict[str, Any]) -> str:
    return f"data: {json.dumps(values, ensure_ascii=False)}\n\n"
