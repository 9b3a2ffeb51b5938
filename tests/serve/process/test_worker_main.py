"""A worker in this process, on one end of a socket."""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.serve.process.messages import read_message, send_message
from regard.serve.process.worker_main import Outbox, Worker
from regard.serve.settings import ServeLimits


class Link:
    """The other end: sends, and reads entries by name."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.entries: dict[str, list[Any]] = {}

    def send(self, **message: Any) -> None:
        send_message(self.connection, message)

    def next(self, name: str) -> Any:
        while not self.entries.get(name):
            for key, values in read_message(self.connection).items():
                self.entries.setdefault(key, []).extend(values)
        return self.entries[name].pop(0)


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[Link]:
    monkeypatch.setattr("warnings.showwarning", None)  # the worker replaces it
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=Worker(theirs).run, daemon=True)
    thread.start()
    yield Link(ours)
    thread.join(20)
    assert not thread.is_alive()
    ours.close()
    theirs.close()


def start(link: Link, source: Path) -> None:
    limits = dataclasses.asdict(ServeLimits())
    link.send(name="reviews", source=str(source), limits=limits, options={"device": "cpu"})


def test_answers_errors_and_questions(link: Link, trained: Path) -> None:
    start(link, trained)
    assert link.next("loaded") == []
    link.send(id=1, submit="predict", items=["a lovely film", " "], options={})
    number, index, text, tokens = link.next("results")
    assert (number, index) == (1, 0)
    assert tokens == 5
    assert text.startswith('{"label"')
    assert link.next("errors")[2]["type"] == "InputError"
    link.send(id=2, submit="translate", items=["a film"], options={})
    assert link.next("refused")[1]["type"] == "InputError"
    link.send(id=3, stream="a film", options={})
    assert link.next("refused")[0] == 3
    link.send(id=4, ask="ping")
    assert link.next("replies") == [4, True]
    link.send(id=5, ask="info")
    assert link.next("replies")[1]["family"] == "bert"
    link.send(id=6, cancel=0)  # of a request that is answered
    link.send(id=7, close=5)


def test_a_folder_that_cannot_be_loaded(link: Link, tmp_path: Path) -> None:
    start(link, tmp_path)
    (error,) = link.next("failed")
    assert error["type"] == "FolderError"
    with pytest.raises(regard.RegardError):
        regard.load(tmp_path)


def test_entries_are_sent_together() -> None:
    ours, theirs = socket.socketpair()
    outbox = Outbox(theirs)
    for number in range(100):
        outbox.put("pieces", 1, str(number))
    outbox.close()
    link = Link(ours)
    assert [link.next("pieces") for _ in range(100)] == [[1, str(number)] for number in range(100)]
    ours.close()
    theirs.close()
