"""Batches made in a background thread arrive complete, in order and on the device."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterator

import pytest
import torch

from regard.data.batching.prefetch import Prefetcher
from regard.errors import InputError
from regard.ragged import Ragged


def test_the_feeder_gives_everything_in_order_each_time() -> None:
    feeder = Prefetcher(range(100), depth=3)
    assert list(feeder) == list(range(100))
    assert list(feeder) == list(range(100))
    assert list(Prefetcher([])) == []


def test_the_feeder_runs_ahead_but_not_too_far() -> None:
    made: list[int] = []

    def source() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    taken = iter(Prefetcher(source(), depth=3))
    for number in range(10):
        assert next(taken) == number
        time.sleep(0.005)
        assert len(made) <= number + 1 + 3
    assert len(made) > 10
    del taken


def test_an_error_in_the_thread_is_raised_where_the_items_are_taken() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise InputError("row 2 is bad")

    taken = iter(Prefetcher(broken()))
    assert next(taken) == 1
    with pytest.raises(InputError, match="row 2 is bad") as caught:
        next(taken)
    assert "in broken" in "".join(traceback.format_exception(caught.value))


def test_leaving_the_loop_ends_the_thread_and_closes_the_source() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    before = threading.active_count()
    for item in Prefetcher(endless()):
        assert item == 1
        break
    assert closed.wait(2)
    assert threading.active_count() == before


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_batches_arrive_on_the_gpu() -> None:
    batches = [Ragged.of([[1, 2, 3], [number]]) for number in range(5)]
    for number, batch in enumerate(Prefetcher(batches, device="cuda")):
        assert batch.ids.tolist() == [1, 2, 3, number]
        assert batch.ids.device.type == batch.bounds.device.type == "cuda"


def test_tensors_are_moved_wherever_they_stand() -> None:
    item = {"a": [torch.ones(2)], "b": (Ragged.of([[1]]), "text", None)}
    for moved in Prefetcher([item], device="meta"):
        assert moved["a"][0].device.type == moved["b"][0].ids.device.type == "meta"
        assert moved["b"][1:] == ("text", None)


def test_a_depth_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1 item ahead"):
        Prefetcher([], depth=0)
