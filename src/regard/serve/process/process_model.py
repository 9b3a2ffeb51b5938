"""A model in another process, as the server sees it: futures that the messages of the process complete."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from queue import SimpleQueue
from typing import Any

from regard.process import SHORT_WAIT
from regard.serve.process.messages import read_message, send_message
from regard.serve.process.remote_errors import error_from
from regard.serve.served import Answered, Computed, Futures, Item, Observe, RequestFailed
from regard.serve.settings import NotReady, ServeLimits

LOG = logging.getLogger("regard.serve")
COMMAND = (sys.executable, "-P", "-m", "regard.serve.process.worker_main")  # -P: no modules of the current folder
VARIABLES = {  # of a worker, where they are not set
    "OMP_WAIT_POLICY": "PASSIVE",  # threads without work leave the cores to the server
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64",  # it keeps 1024 products, one for each size of a batch: memory would grow
}
END_SECONDS = 5.0  # for a process to end after its connection was closed


def _environment() -> dict[str, str]:
    """Variables of a worker: those of this process, but not SHORT_WAIT, which would override OMP_WAIT_POLICY."""
    own = {name: value for name, value in os.environ.items() if (name, value) != SHORT_WAIT}
    return {**VARIABLES, **own}


@dataclass(eq=False)
class Pending:
    """A request that the process works on."""

    futures: list[Future[Any]]
    on_piece: Callable[[str], None] = field(default=lambda piece: None)


class ProcessModel:
    """Starts a process that loads a model. `wait_until_loaded` raises the error of one that cannot be loaded."""

    def __init__(
        self,
        name: str,
        source: str,
        limits: ServeLimits,
        observe: Observe,
        *,
        on_death: Callable[[ProcessModel], None] = lambda served: None,
        **options: Any,
    ) -> None:
        self.name = name
        self.source = source
        self.observe = observe
        self.on_death = on_death
        self.queued_tokens = 0
        self._numbers = itertools.count()
        self._pending: dict[int, Pending] = {}
        self._lock = threading.Lock()
        self._loaded: Future[None] = Future()
        self._closing = False
        self._dead = False
        self._connection, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen(
                [*COMMAND, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # nothing but the address is printed on stdout
                start_new_session=True,  # Ctrl-C is for the server
                env=_environment(),
            )
        self._messages: SimpleQueue[Any] = SimpleQueue()
        start = {"name": name, "source": source, "limits": asdict(limits), "options": options}
        self._messages.put(start)
        for target in (self._send, self._receive):
            threading.Thread(target=target, name=f"{target.__name__} {name}", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the model is loaded and its process runs."""
        loaded = self._loaded.done() and self._loaded.exception() is None
        return loaded and not self._dead and not self._closing

    def wait_until_loaded(self) -> None:
        """Wait for the model. Raises the error of loading it, or NotReady if its process ended."""
        self._loaded.result()

    def submit(self, kind: str, items: Sequence[Item], options: Mapping[str, Any]) -> Futures:
        """A future for each item; an error of the whole request is a RequestFailed in each."""
        futures: Futures = [Future() for _ in items]
        message = {"submit": kind, "items": list(items), "options": dict(options)}
        self._start(Pending(list(futures)), message)
        return futures

    def stream(self, prompt: str, options: Mapping[str, Any], on_piece: Callable[[str], None]) -> Answered:
        """Generate, with a call for each piece of text."""
        future: Answered = Future()
        self._start(Pending([future], on_piece), {"stream": prompt, "options": dict(options)})
        return future

    def ping(self) -> Future[Any]:
        """Whether batches are run, as the process says."""
        return self._ask("ping")

    def info(self) -> Future[dict[str, Any]]:
        """What the process says about its model."""
        return self._ask("info")

    def _ask(self, question: str) -> Future[Any]:
        future: Future[Any] = Future()
        self._start(Pending([future]), {"ask": question})
        return future

    def _start(self, pending: Pending, message: dict[str, Any]) -> None:
        number = next(self._numbers)
        with self._lock:
            if not self.is_alive:
                raise NotReady("the model is not ready: its process is being started. Try again in a moment.")
            self._pending[number] = pending
            self._messages.put({"id": number, **message})
        for index, future in enumerate(pending.futures):
            future.add_done_callback(lambda done, index=index: self._left(number, index, done))  # type: ignore[misc]

    def _left(self, number: int, index: int, future: Future[Any]) -> None:
        """Cancel in the process what was cancelled here, and forget a request that has all its answers."""
        if future.cancelled():
            self._messages.put({"id": number, "cancel": index})
        with self._lock:
            pending = self._pending.get(number)
            if pending is not None and all(each.done() for each in pending.futures):
                del self._pending[number]

    def _send(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                send_message(self._connection, message)
            except OSError:
                return  # the process has ended, which `_receive` notices too

    def _receive(self) -> None:
        try:
            while True:
                self._handle(read_message(self._connection))
        except EOFError:
            self._end()

    def _handle(self, message: dict[str, list[Any]]) -> None:
        for (text,) in message.get("warnings", ()):
            LOG.warning(text)
        if "loaded" in message:
            self._loaded.set_result(None)
        for (values,) in message.get("failed", ()):
            self._loaded.set_exception(error_from(values))
        for name, value in message.get("measured", ()):
            self.observe(name, value)
        for (tokens,) in message.get("queued", ()):
            self.queued_tokens = tokens
        for number, piece in message.get("pieces", ()):
            if (pending := self._pending.get(number)) is not None:
                pending.on_piece(piece)
        for number, index, text, tokens in message.get("results", ()):
            self._complete(number, index, Computed(text, tokens))
        for number, value in message.get("replies", ()):
            self._complete(number, 0, value)
        for number, index, values in message.get("errors", ()):
            self._complete(number, index, error_from(values))
        for number, values in message.get("refused", ()):
            self._refuse(number, error_from(values))

    def _complete(self, number: int, index: int, result: Any) -> None:
        pending = self._pending.get(number)
        if pending is None:
            return
        with suppress(InvalidStateError):  # cancelled at this moment
            if isinstance(result, BaseException):
                pending.futures[index].set_exception(result)
            else:
                pending.futures[index].set_result(result)

    def _refuse(self, number: int, error: BaseException) -> None:
        pending = self._pending.get(number)
        for index in range(0 if pending is None else len(pending.futures)):
            self._complete(number, index, RequestFailed(error))

    def _end(self) -> None:
        """The process has ended: all that waits for it gets an error."""
        with self._lock:
            self._dead = True
            numbers = list(self._pending)
        error = NotReady("the process of the model ended before the answer; a new one is being started. Try again.")
        for number in numbers:
            self._refuse(number, error)
        with suppress(InvalidStateError):
            self._loaded.set_exception(NotReady("the process of the model ended while it loaded the model."))
        self._messages.put(None)
        self._connection.close()
        self.exit_status = wait(self.process)
        if not self._closing and self._loaded.exception() is None:
            self.on_death(self)

    def close(self, *, seconds: float) -> None:
        """Accept no more requests, wait until those in progress are answered, and end the process."""
        with self._lock:
            first = not self._closing
            self._closing = True
            if first:
                self._messages.put({"id": next(self._numbers), "close": seconds})
        try:
            self.process.wait(seconds + END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wait(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process that closed its connection; it is killed if it does not end."""
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
