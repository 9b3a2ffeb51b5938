"""What the routes know of a model: a name, futures for its answers, and its state. The model is in another process.

This module imports no torch, so that the process that only answers HTTP starts fast and stays small.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

Item = Any  # a text, a list of texts or an object, as JSON has it
Observe = Callable[[str, float], None]  # receives the name of a measured quantity and its value
KINDS = ("predict", "embed", "fill", "answer", "translate", "generate", "explain", "tokenize")  # of operations


@dataclass(frozen=True)
class Computed:
    """The answer for one item as JSON, and the tokens of all its sequences."""

    text: str
    tokens: int

    @classmethod
    def of(cls, answer: Mapping[str, Any], tokens: int) -> Computed:
        return cls(answer_text(answer), tokens)

    @property
    def answer(self) -> dict[str, Any]:
        """The answer, parsed."""
        values: dict[str, Any] = json.loads(self.text)
        return values


Answered = Future[Computed]
Futures = list[Answered]


class RequestFailed(Exception):
    """The error of a future whose whole request was refused, such as for a full queue."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(str(error))


class Served(Protocol):
    """A model that answers requests. The methods may be called from any thread."""

    name: str
    source: str

    @property
    def is_alive(self) -> bool:
        """Whether requests are accepted."""

    @property
    def queued_tokens(self) -> int:
        """Tokens that wait."""

    def submit(self, kind: str, items: Sequence[Item], options: Mapping[str, Any]) -> Futures:
        """A future for each item. Raises NotReady if no requests are accepted."""

    def stream(self, prompt: str, options: Mapping[str, Any], on_piece: Callable[[str], None]) -> Answered:
        """Generate, with a call for each piece of text. A cancelled future stops it."""

    def ping(self) -> Future[Any]:
        """A future whose result is whether batches are run."""

    def info(self) -> Future[dict[str, Any]]:
        """What `regard info` shows, the engine, the routes and the state of the queue."""

    def close(self, *, seconds: float) -> None:
        """Accept no more requests, and wait until those in progress are answered."""


def answer_text(answer: Mapping[str, Any]) -> str:
    """An answer as compact JSON that can be sent as UTF-8: lone surrogates are escaped."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(answer, allow_nan=False, separators=(",", ":"))
    return text


def error_of(future: Answered) -> BaseException | None:
    """The error of a future that is done, without the mark of an error of its whole request."""
    error = future.exception()
    return error.error if isinstance(error, RequestFailed) else error
