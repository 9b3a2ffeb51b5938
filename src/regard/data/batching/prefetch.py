"""Prepare batches in a background thread, so that the device does not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from regard.errors import InputError

Item = TypeVar("Item")


@dataclass(frozen=True)
class _End:
    """The end of the source, with its error if it failed."""

    error: BaseException | None


class Prefetcher(Generic[Item]):
    """Iterates over `source` in a thread, at most `depth` items ahead, and yields the items on `device`.

    An error of the source is raised again in the consuming loop, with its traceback from the thread. The thread ends
    when the source ends or when the consuming loop is left early. For a GPU, the thread copies the tensors of an item
    into pinned memory, and they are moved to the GPU without blocking. Every loop restarts the source.
    """

    def __init__(self, source: Iterable[Item], *, device: torch.device | str = "cpu", depth: int = 2) -> None:
        if depth < 1:
            raise InputError(f"depth is {depth}, expected at least 1 item ahead.")
        self.source = source
        self.device = torch.device(device)
        self.depth = depth

    def __iter__(self) -> Generator[Item, None, None]:
        work = _Work(iter(self.source), depth=self.depth, pin=self.device.type == "cuda")
        thread = threading.Thread(target=work.run, name="regard-feeder", daemon=True)
        thread.start()
        try:
            for item in work.taken():
                yield self._moved(item)
        finally:
            work.stop()
            thread.join()

    def _moved(self, item: Item) -> Item:
        if self.device.type == "cpu":
            return item
        moved: Item = map_tensors(item, lambda tensor: tensor.to(self.device, non_blocking=True))
        return moved


class _Work:
    """The queue between the thread and the loop. A free slot allows the thread to prepare one more item."""

    def __init__(self, source: Iterator[Any], *, depth: int, pin: bool) -> None:
        self.source, self.pin = source, pin
        self.slots = threading.Semaphore(depth)
        self.made: SimpleQueue[Any] = SimpleQueue()
        self.stopped = False

    def run(self) -> None:
        error: BaseException | None = None
        try:
            while self._wait_for_slot():
                item = next(self.source)
                self.made.put(map_tensors(item, Tensor.pin_memory) if self.pin else item)
        except StopIteration:
            pass
        except BaseException as failure:  # of any type: it is raised again in the waiting loop
            error = failure
        finally:
            if isinstance(self.source, Generator):
                self.source.close()
            self.made.put(_End(error))

    def _wait_for_slot(self) -> bool:
        self.slots.acquire()
        return not self.stopped

    def taken(self) -> Iterator[Any]:
        while not isinstance(item := self.made.get(), _End):
            self.slots.release()
            yield item
        if item.error is not None:
            raise item.error

    def stop(self) -> None:
        self.stopped = True
        self.slots.release()


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same lists, tuples, dicts and dataclasses with every tensor in them changed."""
    if isinstance(value, Tensor):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: map_tensors(part, change) for name, part in values.items()})
    if isinstance(value, dict):
        return {name: map_tensors(part, change) for name, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(part, change) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(map_tensors(part, change) for part in value)
    return value
