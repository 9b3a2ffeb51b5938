"""How fast a training is: now, and over all its steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class SpeedMeter:
    """Tokens per second of the steps alone: not of scoring and saving, nor of the first step, which compiles."""

    def __init__(self) -> None:
        self._mark = time.monotonic()
        self._first: float | None = None
        self._tokens, self._seconds = 0, 0.0  # since the last report
        self._all_tokens, self._all_seconds = 0, 0.0

    def step(self, tokens: int) -> None:
        """A step of so many tokens is done."""
        self._pass()
        if self._first is None:
            self._first = tokens / max(self._seconds, 1e-9)
            self._seconds = 0.0
        else:
            self._tokens += tokens

    @contextmanager
    def pause(self) -> Iterator[None]:
        """What is done in here is no part of a step."""
        self._pass()
        yield
        self._mark = time.monotonic()

    def report(self) -> float:
        """Tokens per second since the last report; of the first step only where there was no other yet."""
        self._pass()
        tokens, seconds = self._tokens, max(self._seconds, 1e-9)
        if not tokens:
            return self._first or 0.0
        self._all_tokens += tokens
        self._all_seconds += seconds
        self._tokens, self._seconds = 0, 0.0
        return tokens / seconds

    def mean(self) -> float | None:
        """Tokens per second of all reported steps but the first; None where there was no other."""
        return self._all_tokens / self._all_seconds if self._all_tokens else None

    def _pass(self) -> None:
        now = time.monotonic()
        self._seconds += now - self._mark
        self._mark = now
