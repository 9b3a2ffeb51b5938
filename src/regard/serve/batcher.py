"""Which waiting sequences run together, and when.

A job is one text; its sequences (the windows of a long text) may run in different batches. A batch has sequences of one
group (the same computation) with at most `batch_tokens` tokens, without padding. It goes as soon as it is full, or no
other text is being tokenized, or its oldest sequence has waited `max_wait` seconds.

Texts with more tokens than a batch are in a lane of their own. After a batch of long texts the next one is of short
texts if any wait, and after `SHORT_BATCHES` of those a long one goes. So a short text waits for at most one batch of
long texts before the next batch of short ones, and long texts are never left behind.

This module knows no model, thread or socket, and takes its time from `clock`. The caller holds a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.serve.settings import QueueFull

SHORT_BATCHES = 4  # batches of short texts that may go before a waiting long one
INITIAL_SPEED = 5000.0  # tokens per second, until batches were measured
SMOOTHING = 0.2  # weight of the last batch in the measured speed


@dataclass(eq=False)
class TextJob:
    """One text that waits for its answer: the tokens of each of its sequences, and their outputs as they arrive."""

    group: Hashable
    lengths: Sequence[int]
    payload: Any = None
    arrived: float = 0.0
    number: int = 0  # order of arrival
    outputs: list[Any] = field(default_factory=list)
    missing: int = 0  # sequences without an output
    waiting: int = 0  # tokens in the queue
    dropped: bool = False

    @property
    def tokens(self) -> int:
        return sum(self.lengths)


@dataclass(frozen=True)
class BatchRow:
    """One sequence of a job."""

    job: TextJob
    index: int

    @property
    def tokens(self) -> int:
        return self.job.lengths[self.index]


class Lane:
    """Waiting sequences by group, each in order of arrival."""

    def __init__(self) -> None:
        self.groups: dict[Hashable, deque[BatchRow]] = {}

    def add(self, row: BatchRow) -> None:
        self.groups.setdefault(row.job.group, deque()).append(row)

    def oldest(self) -> BatchRow | None:
        """The sequence that has waited longest; those of dropped jobs are removed."""
        for group, rows in list(self.groups.items()):
            while rows and rows[0].job.dropped:
                rows.popleft()
            if not rows:
                del self.groups[group]
        heads = [rows[0] for rows in self.groups.values()]
        return min(heads, key=lambda row: row.job.number, default=None)

    def take(self, group: Hashable, tokens: int) -> list[BatchRow]:
        """Sequences of a group in order, up to this many tokens, at least one."""
        rows = self.groups[group]
        batch: list[BatchRow] = []
        count = 0
        while rows and (not batch or count + rows[0].tokens <= tokens):
            row = rows.popleft()
            if not row.job.dropped:
                batch.append(row)
                count += row.tokens
        return batch


class Batcher:
    """The queue of one model."""

    def __init__(
        self, *, clock: Callable[[], float], batch_tokens: int, max_wait: float, max_queue_tokens: int
    ) -> None:
        self.clock = clock
        self.batch_tokens = batch_tokens
        self.max_wait = max_wait
        self.max_queue_tokens = max_queue_tokens
        self.short, self.long = Lane(), Lane()
        self.queued_tokens = 0
        self.running_tokens = 0
        self.reserved_tokens = 0  # estimates for texts that are being tokenized
        self.tokenizing = 0  # requests that are being tokenized
        self.speed = INITIAL_SPEED  # tokens per second
        self._arrivals = 0
        self._short_batches = 0  # since the last batch of long texts

    def reserve(self, tokens: int) -> None:
        """Announce a request of about this many tokens. Raises QueueFull where there is no place for it."""
        total = self.queued_tokens + self.reserved_tokens
        if total and total + tokens > self.max_queue_tokens:
            raise QueueFull(
                f"{total:,} tokens wait for this model, and the limit is {self.max_queue_tokens:,}. Try again later.",
                retry_after=self.seconds_left(),
            )
        self.reserved_tokens += tokens
        self.tokenizing += 1

    def release(self, tokens: int) -> None:
        """The announced request is tokenized: its jobs were added, or it failed."""
        self.reserved_tokens -= tokens
        self.tokenizing -= 1

    def seconds_left(self) -> float:
        """How long the work that waits now will take, by the speed so far."""
        return (self.queued_tokens + self.reserved_tokens + self.running_tokens) / self.speed

    def add(self, job: TextJob) -> None:
        """Queue the sequences of a job."""
        self._arrivals += 1
        job.arrived, job.number = self.clock(), self._arrivals
        job.missing, job.waiting = len(job.lengths), job.tokens
        job.outputs = [None] * len(job.lengths)
        lane = self.long if job.tokens > self.batch_tokens else self.short
        for index in range(len(job.lengths)):
            lane.add(BatchRow(job, index))
        self.queued_tokens += job.waiting

    def drop(self, job: TextJob) -> None:
        """Forget a job whose client has left. What already runs is finished and thrown away."""
        if not job.dropped:
            job.dropped = True
            self.queued_tokens -= job.waiting
            job.waiting = 0

    def next_batch(self) -> list[BatchRow]:
        """The sequences to run now; empty if none wait, or if more are expected within `max_wait`."""
        lane = self._next_lane()
        head = None if lane is None else lane.oldest()
        if lane is None or head is None:
            return []
        if self._seconds_to_wait(head) > 0:
            return []
        batch = lane.take(head.job.group, self.batch_tokens)
        self._short_batches = 0 if lane is self.long else self._short_batches + 1
        for row in batch:
            row.job.waiting -= row.tokens
        tokens = sum(row.tokens for row in batch)
        self.queued_tokens -= tokens
        self.running_tokens += tokens
        return batch

    def seconds_to_wait(self) -> float | None:
        """Until `next_batch` has something to run; None while nothing waits."""
        heads = [head for lane in (self.short, self.long) if (head := lane.oldest()) is not None]
        return min((self._seconds_to_wait(head) for head in heads), default=None)

    def _seconds_to_wait(self, head: BatchRow) -> float:
        if not self.tokenizing or self.queued_tokens >= self.batch_tokens:
            return 0.0
        return max(0.0, head.job.arrived + self.max_wait - self.clock())

    def _next_lane(self) -> Lane | None:
        has_short, has_long = self.short.oldest() is not None, self.long.oldest() is not None
        if has_long and (not has_short or self._short_batches >= SHORT_BATCHES):
            return self.long
        return self.short if has_short else None

    def finish(self, batch: Sequence[BatchRow], outputs: Sequence[Any], *, seconds: float) -> list[TextJob]:
        """Store the outputs of a batch; the jobs that have all of theirs now."""
        tokens = sum(row.tokens for row in batch)
        self.running_tokens -= tokens
        if seconds > 0:
            self.speed += SMOOTHING * (tokens / seconds - self.speed)
        done = []
        for row, output in zip(batch, outputs, strict=True):
            row.job.outputs[row.index] = output
            row.job.missing -= 1
            if not row.job.missing and not row.job.dropped:
                done.append(row.job)
        return done
