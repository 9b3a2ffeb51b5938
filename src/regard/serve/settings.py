"""Limits of the server, and the errors of requests that exceed them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from regard.errors import InputError, RegardError, setting


class TooLarge(RegardError):
    """A request above a limit; the server answers 413."""


class QueueFull(RegardError):
    """More work waits than the server accepts; it answers 429. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class NotReady(RegardError):
    """The server is loading, draining or has no time left for the request; it answers 503."""


class UnknownModel(RegardError):
    """No model of that name is loaded; the server answers 404."""


@dataclass(frozen=True)
class ServeLimits:
    """What one request, and all waiting requests together, may cost."""

    max_body_bytes: int = 4 << 20
    max_texts: int = 1024  # per request
    max_text_tokens: int = 100_000
    max_request_tokens: int = 200_000
    max_queue_tokens: int = 400_000  # per model
    max_header_bytes: int = 16 << 10
    max_connections: int = 1000  # requests in progress; more get 503
    header_seconds: float = 10.0  # for the headers of a request to arrive
    request_seconds: float = 60.0
    drain_seconds: float = 30.0  # for requests in progress after SIGTERM
    batch_tokens: int = 1024
    max_wait_ms: float = 2.0  # how long a batch waits for texts that are being tokenized

    def __post_init__(self) -> None:
        for one in fields(self):
            lowest = 0 if one.name in ("max_wait_ms", "drain_seconds") else 1
            if getattr(self, one.name) < lowest:
                raise InputError(f"{setting(one.name)} is {getattr(self, one.name)}, expected at least {lowest}.")
        if self.max_queue_tokens < self.max_request_tokens:
            raise InputError(
                f"{setting('max_queue_tokens')} is {self.max_queue_tokens}, less than "
                f"{setting('max_request_tokens')} ({self.max_request_tokens}): such a request could never be accepted."
            )
