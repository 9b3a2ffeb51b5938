"""The worker process: one model, its queue and its answers, asked over a socket.

The server sends {"submit", "items", "options"}, {"stream"}, {"cancel"}, {"ask"} or {"close"}, each with an id. The
worker collects what is ready and sends it as one message; see `Outbox`. It ends when the server does.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from regard.process import prepare_process
from regard.serve.process.messages import read_message, send_message
from regard.serve.process.remote_errors import error_json
from regard.serve.served import Answered, Futures

OOM_SCORE = 300  # more than the server has: if memory runs out, the system ends the worker, which is replaced
Entry = tuple[str, list[Any]]


class Outbox:
    """Sends what was put into it: a message has lists by name, "results", "errors", "pieces" and others."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._entries: SimpleQueue[Entry | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="send", daemon=True)
        self._thread.start()

    def put(self, name: str, *values: Any) -> None:
        self._entries.put((name, list(values)))

    def close(self) -> None:
        """Send what is left."""
        self._entries.put(None)
        self._thread.join()

    def _send(self) -> None:
        while (entry := self._entries.get()) is not None:
            message: dict[str, list[Any]] = {}
            while entry is not None:
                name, values = entry
                message.setdefault(name, []).append(values)
                if self._entries.empty():
                    break
                entry = self._entries.get()
            with suppress(OSError):  # the server has ended; so does this process, see `Worker.run`
                send_message(self.connection, message)
            if entry is None:
                return


class Worker:
    """Loads the model that the first message names, and answers until the server closes the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.outbox = Outbox(connection)
        self.futures: dict[int, Futures] = {}

    def run(self) -> None:
        try:
            start = read_message(self.connection)
            gc.disable()  # a tenth of the time: it looks at all that was imported, again and again
            loaded = self._load(start)
            gc.freeze()  # also later: batches do not wait for it
            gc.enable()
            if loaded:
                while self._handle(read_message(self.connection)):
                    pass
        except EOFError:
            os._exit(0)  # not even what is being computed is of use to anyone
        self.outbox.close()

    def _load(self, start: dict[str, Any]) -> bool:
        from regard.serve.served_model import load_served
        from regard.serve.settings import ServeLimits

        limits = ServeLimits(**start["limits"])
        warnings.showwarning = lambda message, *_: self.outbox.put("warnings", str(message))
        try:
            self.served = load_served(start["name"], start["source"], limits, self._observe, **start["options"])
        except Exception as error:
            self.outbox.put("failed", error_json(error))
            return False
        self.outbox.put("loaded")
        return True

    def _observe(self, name: str, value: float) -> None:
        self.outbox.put("measured", name, value)

    def _handle(self, message: dict[str, Any]) -> bool:
        """Do what a message says; False after "close"."""
        number = message["id"]
        if "cancel" in message:
            self._cancel(number, message["cancel"])
        elif "ask" in message:
            self._reply(number, message["ask"])
        elif "close" in message:
            self.served.close(seconds=message["close"])
            return False
        else:
            self._submit(number, message)
        return True

    def _submit(self, number: int, message: dict[str, Any]) -> None:
        try:
            if "stream" in message:
                futures = [
                    self.served.stream(
                        message["stream"], message["options"], lambda piece: self.outbox.put("pieces", number, piece)
                    )
                ]
            else:
                futures = self.served.submit(message["submit"], message["items"], message["options"])
        except Exception as error:
            self.outbox.put("refused", number, error_json(error))
            return
        self.futures[number] = futures
        for index, future in enumerate(futures):
            future.add_done_callback(lambda done, index=index: self._done(number, index, done))  # type: ignore[misc]

    def _done(self, number: int, index: int, future: Answered) -> None:
        futures = self.futures.get(number, [])
        if all(each.done() for each in futures):
            self.futures.pop(number, None)
            self.outbox.put("queued", self.served.queued_tokens)
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            computed = future.result()
            self.outbox.put("results", number, index, computed.text, computed.tokens)
        else:
            self.outbox.put("errors", number, index, error_json(error))

    def _cancel(self, number: int, index: int) -> None:
        futures = self.futures.get(number)
        if futures is not None:
            futures[index].cancel()

    def _reply(self, number: int, question: str) -> None:
        try:
            value = self.served.ping().result() if question == "ping" else self.served.info().result()
        except Exception as error:
            self.outbox.put("refused", number, error_json(error))
            return
        self.outbox.put("replies", number, value)


def main() -> None:
    """Run a worker on the socket whose number is the first argument."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # meant for the server, which closes the connection
        signal.signal(ignored, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE), encoding="ascii")
    prepare_process()
    Worker(socket.socket(fileno=int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
