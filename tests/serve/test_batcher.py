"""Which sequences run together, with a clock that only moves when told to."""

from __future__ import annotations

import pytest

from regard.serve.batcher import SHORT_BATCHES, Batcher, BatchRow, TextJob
from regard.serve.settings import QueueFull


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def batcher(clock: Clock | None = None, **settings: float) -> Batcher:
    values = {"batch_tokens": 100, "max_wait": 0.01, "max_queue_tokens": 1000, **settings}
    return Batcher(clock=clock or Clock(), **values)  # type: ignore[arg-type]


def add(queue: Batcher, *lengths: int, group: str = "a") -> TextJob:
    job = TextJob(group, lengths)
    queue.add(job)
    return job


def tokens(batch: list[BatchRow]) -> list[int]:
    return [row.tokens for row in batch]


def finish(queue: Batcher, batch: list[BatchRow], seconds: float = 0.0) -> list[TextJob]:
    return queue.finish(batch, [row.index for row in batch], seconds=seconds)


def test_a_batch_has_at_most_its_tokens_and_one_group() -> None:
    queue = batcher()
    for length, group in ((60, "a"), (30, "b"), (30, "a"), (30, "a"), (60, "b")):
        add(queue, length, group=group)
    assert tokens(queue.next_batch()) == [60, 30]
    assert tokens(queue.next_batch()) == [30, 60]
    assert tokens(queue.next_batch()) == [30]
    assert queue.next_batch() == []
    assert (queue.queued_tokens, queue.running_tokens) == (0, 210)


def test_nothing_waits_if_no_text_is_being_tokenized() -> None:
    queue = batcher()
    assert queue.seconds_to_wait() is None
    add(queue, 10)
    assert queue.seconds_to_wait() == 0
    assert tokens(queue.next_batch()) == [10]


def test_a_batch_waits_for_texts_at_the_tokenizer_until_its_deadline() -> None:
    clock = Clock()
    queue = batcher(clock)
    queue.reserve(50)
    add(queue, 10)
    assert queue.next_batch() == []
    assert queue.seconds_to_wait() == pytest.approx(0.01)
    clock.now = 0.02
    assert tokens(queue.next_batch()) == [10]
    add(queue, 10)
    assert queue.next_batch() == []
    queue.release(50)
    assert tokens(queue.next_batch()) == [10]


def test_a_full_batch_goes_before_its_deadline() -> None:
    queue = batcher()
    queue.reserve(50)
    add(queue, 60)
    add(queue, 60)
    assert tokens(queue.next_batch()) == [60]


def test_short_texts_wait_for_at_most_one_batch_of_long_ones() -> None:
    queue = batcher(max_queue_tokens=100_000)
    for _ in range(5):
        add(queue, *[80] * 50)  # a text of 4,000 tokens in windows
    assert tokens(queue.next_batch()) == [80]
    lanes = []
    for _ in range(20):
        add(queue, 10)
        lanes.append(0)
        while tokens(queue.next_batch()) != [10]:
            lanes[-1] += 1
    assert max(lanes) == 1  # batches of long texts before a short one
    assert sum(lanes) == (20 - 1) // SHORT_BATCHES  # long ones are not left behind either


def test_a_sequence_longer_than_a_batch_runs_alone() -> None:
    queue = batcher()
    add(queue, 400)
    add(queue, 400)
    assert tokens(queue.next_batch()) == [400]


def test_a_job_is_done_with_the_last_of_its_sequences() -> None:
    queue = batcher()
    job = add(queue, 80, 80)
    first, second = queue.next_batch(), queue.next_batch()
    assert finish(queue, second) == []
    assert finish(queue, first) == [job]
    assert job.outputs == [0, 1]


def test_a_full_queue_says_when_to_come_back() -> None:
    queue = batcher()
    queue.speed = 100.0
    queue.reserve(5000)  # one request alone is always accepted: its own limits are checked elsewhere
    queue.release(5000)
    add(queue, 90)
    for _ in range(9):
        add(queue, 90)
    with pytest.raises(QueueFull) as error:
        queue.reserve(200)
    assert error.value.retry_after == pytest.approx(9)
    queue.next_batch()
    finish(queue, [], seconds=0)
    queue.reserve(150)


def test_dropped_jobs_leave_the_queue() -> None:
    queue = batcher()
    first, second = add(queue, 80, 40), add(queue, 30)
    started = queue.next_batch()
    queue.drop(first)
    queue.drop(first)
    assert queue.queued_tokens in (0, 30, 120)
    assert finish(queue, started) in ([], [second])
    rest = queue.next_batch()
    assert all(row.job is not first for row in rest)
    assert queue.queued_tokens == 0
    assert queue.next_batch() == []


def test_the_speed_follows_the_batches() -> None:
    queue = batcher()
    before = queue.speed
    for _ in range(50):
        add(queue, 100)
        finish(queue, queue.next_batch(), seconds=1.0)
    assert 100 <= queue.speed < 101 < before
    assert queue.running_tokens == 0
