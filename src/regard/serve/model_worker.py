"""One model and its queue: a thread tokenizes, one runs batches, one writes the answers that futures receive.

A future that is cancelled drops its job from the queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from regard.errors import RegardError
from regard.predict.model import Model
from regard.serve.batcher import Batcher, BatchRow, TextJob
from regard.serve.operations.operation import Operation, Prepared
from regard.serve.served import Answered, Computed, Item, Observe
from regard.serve.settings import NotReady, ServeLimits, TooLarge

CHARACTERS_PER_TOKEN = 4  # for an estimate before the texts are tokenized


@dataclass(eq=False)
class ItemTask:
    """An item in progress and the future that waits for its answer."""

    operation: Operation
    item: Item
    future: Answered = field(default_factory=Future)
    job: TextJob | None = None
    prepared: Prepared | None = None
    ended: bool = False  # answered, failed or dropped


class ModelWorker:
    """Runs the operations of one model. `submit` may be called from any thread."""

    def __init__(self, model: Model, limits: ServeLimits, *, observe: Observe = lambda name, value: None) -> None:
        self.model = model
        self.limits = limits
        self.observe = observe
        self.batcher = Batcher(
            clock=time.monotonic,
            batch_tokens=limits.batch_tokens,
            max_wait=limits.max_wait_ms / 1000,
            max_queue_tokens=limits.max_queue_tokens,
        )
        self.open_tasks = 0
        self._changed = threading.Condition()
        self._closing = False
        self._tokenizer = ThreadPoolExecutor(1, thread_name_prefix="tokenize")
        self._answerer = ThreadPoolExecutor(1, thread_name_prefix="answer")  # beside the next batch
        self._runner = threading.Thread(target=self._run_batches, name="run", daemon=True)
        self._runner.start()

    @property
    def is_alive(self) -> bool:
        """Whether batches are still run."""
        return self._runner.is_alive() and not self._closing

    def submit(self, operation: Operation, items: Sequence[Item]) -> list[Answered]:
        """A future for each item. Raises QueueFull, or NotReady after `close`."""
        estimate = sum(len(str(item)) for item in items) // CHARACTERS_PER_TOKEN + len(items)
        with self._changed:
            if self._closing or not self._runner.is_alive():
                raise NotReady("this model is not ready. Try again in a moment.")
            self.batcher.reserve(estimate)
            tasks = [self._new_task(operation, item) for item in items]
            self._tokenizer.submit(self._tokenize, operation, tasks, estimate)
        return [task.future for task in tasks]

    def _new_task(self, operation: Operation, item: Item) -> ItemTask:
        task = ItemTask(operation, item)
        self.open_tasks += 1
        task.future.add_done_callback(lambda done: self._drop(task) if done.cancelled() else None)
        return task

    def _drop(self, task: ItemTask) -> None:
        """Take the job of a cancelled future from the queue. Before it has one, `_queue` finds the future done."""
        with self._changed:
            if task.job is not None:
                assert task.prepared is not None
                task.prepared.left.set()
                self.batcher.drop(task.job)
                self._end(task)

    def _end(self, task: ItemTask) -> None:
        if not task.ended:
            task.ended = True
            self.open_tasks -= 1
            self._changed.notify_all()

    def _tokenize(self, operation: Operation, tasks: list[ItemTask], estimate: int) -> None:
        started = time.monotonic()
        try:
            results = prepare_each(operation, [task.item for task in tasks])
        except BaseException as error:  # such as no memory: the request fails, the thread stays
            results = [error] * len(tasks)
        self.observe("tokenize_seconds", time.monotonic() - started)
        with self._changed:
            self.batcher.release(estimate)
            total = sum(sum(result.lengths) for result in results if isinstance(result, Prepared))
            if total > self.limits.max_request_tokens:
                self._refuse_request(tasks, total)
            for task, result in zip(tasks, results, strict=True):
                self._queue(task, self._checked(result))
            self._changed.notify_all()

    def _refuse_request(self, tasks: Sequence[ItemTask], total: int) -> None:
        error = TooLarge(
            f"the request has {total:,} tokens, expected at most {self.limits.max_request_tokens:,}. Send it in parts."
        )
        for task in tasks:
            _fail(task.future, error)

    def _checked(self, result: Prepared | BaseException) -> Prepared | BaseException:
        limit = self.limits.max_text_tokens
        if isinstance(result, Prepared) and sum(result.lengths) > limit:
            return TooLarge(f"the text has {sum(result.lengths):,} tokens, expected at most {limit:,}. Split it.")
        return result

    def _queue(self, task: ItemTask, result: Prepared | BaseException) -> None:
        if isinstance(result, BaseException):
            self._fail_task(task, result)
        elif task.future.done():  # its client has left, or the request was refused
            self._end(task)
        else:
            task.prepared = result
            task.job = TextJob(task.operation.group, result.lengths, payload=task)
            if task.operation.runs:
                self.batcher.add(task.job)
            else:
                self._answerer.submit(self._answer, task.job)

    def _fail_task(self, task: ItemTask, error: BaseException) -> None:
        self._end(task)
        _fail(task.future, error)

    def _run_batches(self) -> None:
        while True:
            with self._changed:
                while not (batch := self.batcher.next_batch()):
                    if self._closing and not self.open_tasks:
                        return
                    self._changed.wait(self.batcher.seconds_to_wait())
                queued = time.monotonic() - min(row.job.arrived for row in batch)
            self.observe("queue_seconds", queued)
            self.observe("batch_tokens", sum(row.tokens for row in batch))
            self._run(batch)

    def _run(self, batch: list[BatchRow]) -> None:
        started = time.monotonic()
        outputs = run_rows(batch)
        seconds = time.monotonic() - started
        self.observe("run_seconds", seconds)
        with self._changed:
            done = self.batcher.finish(batch, outputs, seconds=seconds)
        for job in done:
            self._answerer.submit(self._answer, job)

    def _answer(self, job: TextJob) -> None:
        task: ItemTask = job.payload
        assert task.prepared is not None
        error = next((output for output in job.outputs if isinstance(output, BaseException)), None)
        if error is None:
            try:
                computed = Computed.of(task.operation.answer(task.prepared, job.outputs), job.tokens)
            except Exception as problem:  # one text fails alone
                error = problem
        with self._changed:
            if error is not None:
                self._fail_task(task, error)
                return
            self._end(task)
        with suppress(InvalidStateError):  # cancelled at this moment
            task.future.set_result(computed)

    def close(self, *, seconds: float = 30.0) -> None:
        """Accept no more items, and wait until those in progress are answered."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._runner.join(seconds)
        self._tokenizer.shutdown(wait=False, cancel_futures=True)
        self._answerer.shutdown(wait=True)


def prepare_each(operation: Operation, items: Sequence[Item]) -> list[Prepared | BaseException]:
    """The items as sequences, each with its own error where it cannot be used."""
    try:
        return list(operation.prepare(items))
    except RegardError as error:
        if len(items) == 1:
            return [error]
    results: list[Prepared | BaseException] = []
    for item in items:
        try:
            results += operation.prepare([item])
        except RegardError as error:
            results.append(error)
    return results


def run_rows(batch: Sequence[BatchRow]) -> list[Any]:
    """The outputs of a batch. If it fails, each sequence runs alone, and those that fail get their error."""
    operation: Operation = batch[0].job.payload.operation
    rows = [(row.job.payload.prepared, row.index) for row in batch]
    try:
        return operation.run(rows)
    except Exception as error:
        if len(rows) == 1:
            return [error]
    outputs: list[Any] = []
    for row in rows:
        try:
            outputs += operation.run([row])
        except Exception as error:  # any error is the answer to this text alone
            outputs.append(error)
    return outputs


def _fail(future: Answered, error: BaseException) -> None:
    with suppress(InvalidStateError):
        future.set_exception(error)
