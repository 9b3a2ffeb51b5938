"""From the futures of a worker to an answer: a limit of time, clients that leave, and errors of single texts."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fastapi import Request

from regard.errors import InputError
from regard.serve.model_table import ModelTable
from regard.serve.served import Answered, Computed, Item, RequestFailed, Served
from regard.serve.settings import NotReady, TooLarge

FIRST = re.compile(r"\A(input|text) 0\b")  # how an error calls the one item that was checked


class ClientLeft(Exception):
    """The client closed the connection before its answer was ready."""


async def compute(
    request: Request,
    table: ModelTable,
    model: str | None,
    kind: str,
    items: Sequence[Item],
    *,
    on_error: str = "fail",
    **options: Any,
) -> tuple[Served, list[Computed | None]]:
    """The model of a request and its answers for the items, in order. With `on_error="null"` None for each that failed.

    An error names the index of its item, where the request has several.
    """
    limits = table.limits
    if len(items) > limits.max_texts:
        raise TooLarge(
            f"the request has {len(items):,} texts, expected at most {limits.max_texts:,}. Send it in parts."
        )
    served, futures = table.submit(model, kind, items, **options)
    await wait_for(request, futures, seconds=limits.request_seconds)
    results: list[Computed | None] = []
    for number, future in enumerate(futures):
        error = future.exception()
        if error is None:
            results.append(future.result())
        elif isinstance(error, RequestFailed):
            raise error.error
        elif on_error == "null" and isinstance(error, InputError | TooLarge):
            results.append(None)
        else:
            raise _at_index(error, number, len(items))
    return served, results


async def wait_for(request: Request, futures: Sequence[Answered], *, seconds: float) -> None:
    """Wait until all are done. Cancels them if the client leaves or the time is over."""
    if all(future.done() for future in futures):
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    done = itertools.count(1)

    def one_done(_: Answered) -> None:  # in any thread
        if next(done) == len(futures):
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

    for future in futures:
        future.add_done_callback(one_done)
    left = asyncio.create_task(_disconnected(request))
    left.add_done_callback(lambda _: ended.set())
    timer = loop.call_later(seconds, ended.set)
    try:
        await ended.wait()
        if all(future.done() for future in futures):
            return
        if left.done():
            raise ClientLeft
        raise NotReady(f"the request took longer than {seconds:g} seconds. Send fewer or shorter texts.")
    finally:
        timer.cancel()
        left.cancel()
        for future in futures:
            future.cancel()  # those that are not done


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _at_index(error: BaseException, number: int, count: int) -> BaseException:
    """The same error with the index of its text, where there are several."""
    if count == 1 or not isinstance(error, InputError | TooLarge):
        return _without_index(error)
    kind = TooLarge if isinstance(error, TooLarge) else InputError
    return kind(f"input {number}: {FIRST.sub('it', str(error))}")


def _without_index(error: BaseException) -> BaseException:
    """The same error without an index: each item is checked alone, so it would always be 0."""
    if type(error) is not InputError:
        return error
    return InputError(FIRST.sub(r"the \1", str(error)))
