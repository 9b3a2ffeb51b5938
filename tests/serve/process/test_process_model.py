"""A model in another process: the same answers, and a new process after one was killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.serve.helpers import until

import regard
from regard.errors import FolderError, RegardError
from regard.process import SHORT_WAIT
from regard.serve.http.app import create_app
from regard.serve.model_table import ModelTable
from regard.serve.process import process_model as process_module
from regard.serve.process.process_model import ProcessModel
from regard.serve.process.remote_errors import error_json
from regard.serve.served import RequestFailed
from regard.serve.settings import NotReady, ServeLimits


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
    assert served._pending == {}


def test_loading_again_closes_the_old_process(table: ModelTable) -> None:
    served = process_model(table)
    future = served.submit("predict", ["a film"], {})[0]
    with TestClient(create_app(table)) as client:
        assert client.post("/models/reload", json={"model": "reviews"}).json() == {"reloaded": ["reviews"]}
    assert future.result(10).answer["windows"] == 1
    assert served.process.wait(10) == 0
    with pytest.raises(NotReady):
        served.submit("predict", ["a film"], {})
    assert table.ready


def test_a_folder_that_cannot_be_loaded_keeps_the_old_model(table: ModelTable, tmp_path: Path) -> None:
    before, source = table.get(None), table.sources["reviews"]
    table.sources["reviews"] = str(tmp_path)
    with pytest.raises(FolderError):
        table.reload()
    table.sources["reviews"] = source
    assert table.get(None) is before
    assert table.ready


def test_a_process_that_loads_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    send = "s.sendall(struct.pack('!Q', len(m)) + m)"
    failed = json.dumps({"failed": [[error_json(FolderError("no folder"))]]}).encode()
    for code, words in ((f"m = {failed!r}; {send}", "no folder"), ("sys.exit(1)", "ended while it loaded")):
        script = f"import socket, struct, sys; s = socket.socket(fileno=int(sys.argv[1])); {code}"
        monkeypatch.setattr(process_module, "COMMAND", (sys.executable, "-c", script))
        served = ProcessModel("x", "x", ServeLimits(), lambda name, value: None)
        with pytest.raises(RegardError, match=words):
            served.wait_until_loaded()
        assert not served.is_alive
        served.close(seconds=1)


@pytest.mark.parametrize(("own", "shown"), [({}, None), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_threads_of_a_worker_leave_the_cores_to_the_server(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, str], shown: str | None
) -> None:
    """What `regard.prepare_process` sets would override the policy; a value of the user's own stays."""
    monkeypatch.setattr(os, "environ", dict([SHORT_WAIT]) | own)
    variables = process_module._environment()
    assert (variables["OMP_WAIT_POLICY"], variables.get("GOMP_SPINCOUNT")) == ("PASSIVE", shown)
