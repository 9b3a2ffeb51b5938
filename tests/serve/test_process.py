"""A model in another process: messages, the worker, its counterpart in the server, and a new one after a kill."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.helpers import until

import regard
from regard.errors import FolderError, InputError, NotFinite, RegardError, setting
from regard.process import SHORT_WAIT
from regard.serve.http.app import create_app
from regard.serve.model_table import ModelTable
from regard.serve.process import process_model as process_module
from regard.serve.process.messages import read_message, send_message
from regard.serve.process.process_model import ProcessModel
from regard.serve.process.remote_errors import WorkerFailed, error_from, error_json
from regard.serve.process.worker_main import Outbox, Worker
from regard.serve.served import Computed, RequestFailed, answer_text
from regard.serve.settings import NotReady, QueueFull, ServeLimits, TooLarge

# messages and errors


def test_messages_of_any_size_arrive_in_order() -> None:
    first, second = socket.socketpair()
    messages = [{"a": 1}, ["half \ud83c", 0.1], "x" * 3_000_000, None]
    sender = threading.Thread(target=lambda: [send_message(first, message) for message in messages])
    sender.start()
    assert [read_message(second) for _ in messages] == messages
    sender.join()
    first.close()
    with pytest.raises(EOFError):
        read_message(second)
    second.close()


@pytest.mark.parametrize("answer", [{"text": "soup 🍲"}, {"text": "half \ud83c"}, {"score": 0.1 + 0.2}])
def test_an_answer_is_json_that_can_be_sent(answer: dict[str, Any]) -> None:
    assert json.loads(answer_text(answer).encode()) == answer
    assert Computed.of(answer, 3).answer == answer


@pytest.mark.parametrize(
    "error",
    [
        InputError(f"{setting('lr')} is 1."),
        NotFinite("text 3"),
        TooLarge("too large"),
        FolderError("no folder"),
        QueueFull("full", retry_after=2.5),
    ],
)
def test_an_error_keeps_its_class_and_message(error: RegardError) -> None:
    copy = error_from(json.loads(json.dumps(error_json(error))))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert isinstance(copy, RegardError)
    assert copy.with_flags == error.with_flags
    assert getattr(copy, "retry_after", None) == getattr(error, "retry_after", None)


def test_other_errors() -> None:
    copy = error_from(error_json(ZeroDivisionError("no")))
    assert isinstance(copy, WorkerFailed)
    assert "ZeroDivisionError: no" in str(copy)
    unknown = error_from({"type": "OtherError", "message": "words", "with_flags": "words"})
    assert type(unknown).__name__ == "OtherError"
    assert isinstance(unknown, RegardError)


# a worker in this process, on one end of a socket


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

    def load(self, source: Path) -> None:
        limits = dataclasses.asdict(ServeLimits())
        self.send(name="reviews", source=str(source), limits=limits, options={"device": "cpu"})


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


def test_answers_errors_and_questions(link: Link, trained: Path) -> None:
    link.load(trained)
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
    link.load(tmp_path)
    (error,) = link.next("failed")
    assert error["type"] == "FolderError"


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


# a process of its own


@pytest.fixture(scope="module")
def table(trained: Path) -> Iterator[ModelTable]:
    table = ModelTable(ServeLimits(), device="cpu")
    table.load_all([f"reviews={trained}"])
    yield table
    table.close(seconds=5)


def process_model(table: ModelTable) -> ProcessModel:
    served = table.get(None)
    assert isinstance(served, ProcessModel)
    return served


def test_answers_are_those_of_predict(table: ModelTable, trained: Path) -> None:
    texts = [f"a lovely film {number}" for number in range(30)]
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(texts)]
    with TestClient(create_app(table)) as client:
        assert client.post("/predict", json={"texts": texts}).json()["answers"] == expected
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/info").json()["models"][0]["family"] == "bert"
        assert "regard_run_seconds_count" in client.get("/metrics").text
        bad = {"texts": ["a film", " "]}
        assert client.post("/predict", json=bad).json()["error"].startswith("input 1")
        assert client.post("/predict", json={**bad, "on_error": "null"}).json()["answers"][1] is None
        assert client.post("/translate", json={"text": "a film", "on_error": "null"}).status_code == 422
        assert client.post("/generate", json={"prompt": "a film", "stream": True}).status_code == 422


def test_a_killed_process_is_replaced(table: ModelTable) -> None:
    served = process_model(table)
    os.kill(served.process.pid, signal.SIGSTOP)
    futures = served.submit("predict", ["a film", "a book"], {})
    left = served.submit("predict", ["a film"], {})[0]
    assert left.cancel()
    with TestClient(create_app(table)) as client:
        os.kill(served.process.pid, signal.SIGKILL)
        until(lambda: client.get("/ready").status_code == 503, 1)
        for future in futures:
            error = future.exception(5)
            assert isinstance(error, RequestFailed)
            assert isinstance(error.error, NotReady)
        response = client.get("/health")
        assert (response.status_code, response.json()["error_type"]) == (503, "WorkerDied")
        assert client.post("/predict", json={"text": "a film"}).status_code == 503
        assert "again" in client.get("/ready").json()["error"]
        until(lambda: client.get("/ready").status_code == 200)
        assert table.get(None) is not served
        assert client.post("/predict", json={"text": "a film"}).status_code == 200
        assert "regard_worker_restarts 1.0" in client.get("/metrics").text


def test_loading_again_closes_the_old_process_or_keeps_it(table: ModelTable, tmp_path: Path) -> None:
    served, source = process_model(table), table.sources["reviews"]
    future = served.submit("predict", ["a film"], {})[0]
    with TestClient(create_app(table)) as client:
        assert client.post("/models/reload", json={"model": "reviews"}).json() == {"reloaded": ["reviews"]}
    assert future.result(10).answer["windows"] == 1
    assert served.process.wait(10) == 0
    with pytest.raises(NotReady):
        served.submit("predict", ["a film"], {})
    new, table.sources["reviews"] = table.get(None), str(tmp_path)
    with pytest.raises(FolderError):
        table.reload()
    table.sources["reviews"] = source
    assert table.get(None) is new
    assert table.ready


def started_with(code: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The error of a process that runs other code than a worker, with `fail(message)` to report it."""
    fail = "lambda m: s.sendall(struct.pack('!Q', len(m)) + m)"
    script = f"import json, os, socket, struct, sys; s = socket.socket(fileno=int(sys.argv[1])); fail = {fail}; {code}"
    monkeypatch.setattr(process_module, "COMMAND", (sys.executable, "-c", script))
    served = ProcessModel("x", "x", ServeLimits(), lambda name, value: None)
    with pytest.raises(RegardError) as error:
        served.wait_until_loaded()
    assert not served.is_alive
    served.close(seconds=1)
    return str(error.value)


def test_a_process_that_loads_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = json.dumps({"failed": [[error_json(FolderError("no folder"))]]}).encode()
    assert started_with(f"fail({failed!r})", monkeypatch) == "no folder"
    assert "ended while it loaded" in started_with("sys.exit(1)", monkeypatch)


@pytest.mark.parametrize(("own", "shown"), [(SHORT_WAIT, "None"), (("GOMP_SPINCOUNT", "7"), "7")])
def test_threads_of_a_worker_leave_the_cores_to_the_server(
    monkeypatch: pytest.MonkeyPatch, own: tuple[str, str], shown: str
) -> None:
    """What the command line sets would override the policy; a value of the user's own stays."""
    monkeypatch.setenv(*own)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    error = '{"type": "InputError", "message": words, "with_flags": words}'
    code = "words = f\"{os.environ['OMP_WAIT_POLICY']} {os.environ.get('GOMP_SPINCOUNT')}\"; "
    code += f'fail(json.dumps({{"failed": [[{error}]]}}).encode())'
    assert started_with(code, monkeypatch) == f"PASSIVE {shown}"
