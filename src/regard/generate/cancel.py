"""Stop a generation from another thread, between two of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_STOP: ContextVar[Event | None] = ContextVar("stop", default=None)


class GenerationCancelled(Exception):
    """The event of `cancellable` was set while text was generated."""


@contextmanager
def cancellable(stop: Event) -> Iterator[None]:
    """What is generated inside, in this thread, ends with GenerationCancelled soon after `stop` is set."""
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


def check_cancelled() -> None:
    """Called between two steps of decoding."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise GenerationCancelled
