"""A server in a process of its own."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.helpers import start

import regard
from regard.errors import FolderError
from regard.serve.http.guard import LOG
from regard.serve.http.run_server import _reload
from regard.serve.model_table import ModelTable
from regard.serve.settings import ServeLimits


def request(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=20
    ) as response:
        return json.load(response)


@pytest.fixture
def server(trained: Path, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    with (tmp_path / "log").open("w") as log:
        process = start(
            "serve", f"reviews={trained}", "--port", 0, "--device", "cpu", "--look", "--json", err=log.fileno()
        )
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            until_ready(url)
            yield process, url
        finally:
            process.kill()
            process.communicate()


def until_ready(url: str) -> None:
    end = time.monotonic() + 60
    while not is_ready(url):
        assert time.monotonic() < end
        time.sleep(0.05)


def until_accepted(url: str, results: list[Any]) -> None:
    """Until all four requests are in progress or answered; the question for the metrics is in progress too."""
    open_now = 0
    while open_now + len(results) < 5:
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as response:
            lines = response.read().decode().splitlines()
        open_now = int(float(next(line.split()[1] for line in lines if line.startswith("regard_requests_in_progress"))))
        if len(results) == 4:
            return


def is_ready(url: str) -> bool:
    try:
        return bool(request(f"{url}/ready")["ready"])
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return False


def test_a_server_answers_reloads_and_drains(server: tuple[Any, str], trained: Path, tmp_path: Path) -> None:
    process, url = server
    texts = [f"a lovely film {number}" for number in range(20)]
    expected = [answer.json() for answer in regard.load(trained, device="cpu").predict(texts)]
    assert request(f"{url}/predict", {"texts": texts})["answers"] == expected
    with urllib.request.urlopen(f"{url}/look/", timeout=20) as page:
        assert b"app.js" in page.read()
    assert request(f"{url}/look/view/page", {})["models"][0]["name"] == "reviews"
    process.send_signal(signal.SIGHUP)
    results: list[Any] = []

    def ask() -> None:
        results.append(request(f"{url}/predict", {"texts": texts * 20})["answers"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    until_accepted(url, results)
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(20)
    assert results == [expected * 20] * 4
    assert process.wait(20) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert sum(line.get("route") == "/predict" for line in lines) == 5
    (draining,) = [line for line in lines if line["message"] == "draining"]
    assert draining["signal"] == "SIGTERM"
    assert lines[-1]["message"] == "stopped"
    assert "lovely" not in (tmp_path / "log").read_text()


def test_a_failed_reload_is_logged_in_words(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise FolderError("runs/reviews does not exist.")

    table = ModelTable(ServeLimits())
    monkeypatch.setattr(table, "reload", fails)
    monkeypatch.setattr(LOG, "propagate", True)
    _reload(table)
    (record,) = caplog.records
    assert record.__dict__["fields"] == {"error": "runs/reviews does not exist."}
    assert record.exc_info is None
