"""Errors as JSON, so that one raised in a worker process has the same class and message in the server."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from regard.errors import RegardError
from regard.serve import settings


class WorkerFailed(Exception):
    """An error of a worker process that is no RegardError; the message is its traceback."""


def error_json(error: BaseException) -> dict[str, Any]:
    """An error as JSON."""
    if not isinstance(error, RegardError):
        return {"type": None, "message": "".join(traceback.format_exception(error))}
    values: dict[str, Any] = {"type": type(error).__name__, "message": str(error), "with_flags": error.with_flags}
    if isinstance(error, settings.QueueFull):
        values["retry_after"] = error.retry_after
    return values


def error_from(values: dict[str, Any]) -> Exception:
    """The error of `error_json`. One of a class that is not imported here is a RegardError of that name."""
    if values["type"] is None:
        return WorkerFailed(values["message"])
    kinds = {kind.__name__: kind for kind in _subclasses(RegardError)}
    kind: type[RegardError] = kinds.get(values["type"]) or type(values["type"], (RegardError,), {})
    error = kind.__new__(kind)  # without its constructor, whose arguments differ
    RegardError.__init__(error, values["message"])
    error.with_flags = values["with_flags"]
    if "retry_after" in values:
        error.__dict__["retry_after"] = values["retry_after"]
    return error


def _subclasses(kind: type[RegardError]) -> Iterator[type[RegardError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _subclasses(each)
