"""One model and its queue."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from tests.serve.helpers import tiny, until

from regard.errors import InputError
from regard.serve.model_worker import ModelWorker, prepare_each
from regard.serve.operations.operation import Operation, Prepared
from regard.serve.settings import NotReady, QueueFull, ServeLimits, TooLarge


class Count(Operation):
    """Waits until it may run, and counts what it ran."""

    def __init__(self) -> None:
        super().__init__(tiny("bert"))
        self.gate = threading.Event()
        self.batches: list[list[Any]] = []

    @property
    def group(self) -> Hashable:
        return "count"

    def prepare(self, items: Sequence[Any]) -> list[Prepared]:
        if any(item == "bad" for item in items):
            raise InputError("a bad text")
        return [Prepared((len(item),), item) for item in items]

    def run(self, rows: Sequence[tuple[Prepared, int]]) -> list[Any]:
        assert self.gate.wait(10)
        self.batches.append([prepared.payload for prepared, _ in rows])
        if any("fail" in prepared.payload for prepared, _ in rows):
            raise RuntimeError("it fails")
        return [prepared.payload.upper() for prepared, _ in rows]

    def answer(self, prepared: Prepared, outputs: Sequence[Any]) -> dict[str, Any]:
        return {"text": outputs[0]}


def worker(**limits: Any) -> ModelWorker:
    return ModelWorker(tiny("bert"), ServeLimits(**{"batch_tokens": 20, **limits}))


def test_one_bad_text_fails_alone() -> None:
    operation, queue = Count(), worker()
    operation.gate.set()
    good, bad, failing, last = queue.submit(operation, ["good", "bad", "fail", "last"])
    assert good.result(10).answer == {"text": "GOOD"}
    assert last.result(10).tokens == 4
    assert isinstance(bad.exception(10), InputError)
    assert isinstance(failing.exception(10), RuntimeError)
    queue.close()


def test_cancelled_work_is_dropped() -> None:
    operation, queue = Count(), worker()
    running = queue.submit(operation, ["running"])[0]
    until(lambda: queue.batcher.running_tokens)
    left, other = queue.submit(operation, ["left", "other"])
    until(lambda: queue.batcher.queued_tokens == 9)
    assert left.cancel()
    assert queue.batcher.queued_tokens == 5
    operation.gate.set()
    assert other.result(10).answer == {"text": "OTHER"}
    assert running.result(10).answer == {"text": "RUNNING"}
    assert operation.batches == [["running"], ["other"]]
    queue.close()
    assert queue.open_tasks == 0


def test_limits_of_tokens() -> None:
    operation, queue = Count(), worker(max_text_tokens=10, max_request_tokens=25, max_queue_tokens=30)
    operation.gate.set()
    long, short = queue.submit(operation, ["x" * 11, "short"])
    assert isinstance(long.exception(10), TooLarge)
    assert short.result(10).answer == {"text": "SHORT"}
    refused = queue.submit(operation, ["a" * 9, "b" * 9, "c" * 9])
    assert all(isinstance(future.exception(10), TooLarge) for future in refused)
    assert queue.open_tasks == 0
    operation.gate.clear()
    queue.submit(operation, ["running"])
    until(lambda: queue.batcher.running_tokens)
    for number in range(4):
        queue.submit(operation, [f"{number}234567"])
    until(lambda: queue.batcher.queued_tokens == 28)
    with pytest.raises(QueueFull):
        queue.submit(operation, ["more text"])
    operation.gate.set()
    queue.close()


def test_a_closed_worker_answers_what_it_has() -> None:
    operation, queue = Count(), worker()
    future = queue.submit(operation, ["last"])[0]
    closing = threading.Thread(target=queue.close)
    closing.start()
    until(lambda: not queue.is_alive)
    with pytest.raises(NotReady):
        queue.submit(operation, ["more"])
    operation.gate.set()
    closing.join(10)
    assert future.result(1).answer == {"text": "LAST"}


def test_measurements_are_reported() -> None:
    names: list[str] = []
    operation = Count()
    operation.gate.set()
    queue = ModelWorker(tiny("bert"), ServeLimits(), observe=lambda name, value: names.append(name))
    queue.submit(operation, ["text"])[0].result(10)
    queue.close()
    assert set(names) == {"tokenize_seconds", "queue_seconds", "batch_tokens", "run_seconds"}


def test_each_item_has_its_own_error() -> None:
    results = prepare_each(Count(), ["a", "bad", "b"])
    assert [isinstance(result, Prepared) for result in results] == [True, False, True]
    assert prepare_each(Count(), []) == []
