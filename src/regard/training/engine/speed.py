"""Training speed: tokens per second, since the last report and over all steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class SpeedMeter:
    """Tokens per second of the optimizer steps, without evaluation, saving, and the first step, which compiles."""

    def __init__(self) -> None:
        self._mark = time.monotonic()
        self._first: float | None = None
        self._tokens = 0  # since the last report
        self._seconds = 0.0
        self._all_tokens = 0
        self._all_seconds = 0.0
        self._active_seconds = 0.0

    def step(self, tokens: int) -> None:
        """Count a finished step of this many tokens."""
        self._update_clock()
        if self._first is None:
            self._first = tokens / max(self._seconds, 1e-9)
            self._seconds = 0.0
        else:
            self._tokens += tokens

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the time of this block."""
        self._update_clock()
        yield
        self._mark = time.monotonic()

    def seconds(self) -> float:
        """Seconds so far that were not paused."""
        self._update_clock()
        return self._active_seconds

    def report(self) -> float:
        """Tokens per second since the last report; of the first step if there was no other yet."""
        self._update_clock()
        tokens, seconds = self._tokens, max(self._seconds, 1e-9)
        if not tokens:
            return self._first or 0.0
        self._all_tokens += tokens
        self._all_seconds += seconds
        self._tokens = 0
        self._seconds = 0.0
        return tokens / seconds

    def mean(self) -> float | None:
        """Tokens per second of all reported steps but the first; None if there was no other."""
        return self._all_tokens / self._all_seconds if self._all_tokens else None

    def _update_clock(self) -> None:
        now = time.monotonic()
        self._seconds += now - self._mark
        self._active_seconds += now - self._mark
        self._mark = now
