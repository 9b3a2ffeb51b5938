"""Work over a data set: progress, results, errors and stops."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.look.models import KINDS

from regard.errors import InputError
from regard.look.jobs import Jobs, copy_of
from regard.predict import Model
from regard.progress import OnProgress, Progress


def wait(jobs: Jobs, name: str) -> dict[str, Any]:
    for _ in range(500):
        status = jobs.status(name)
        if status["state"] == "done":
            return status
        time.sleep(0.01)
    raise AssertionError(status)


def test_progress_and_result() -> None:
    jobs = Jobs()
    go = threading.Event()

    def work(model: Model, progress: OnProgress) -> dict[str, Any]:
        progress(Progress("rows", 1, 4))
        go.wait(5)
        return {"family": model.family}

    assert jobs.status("a") == {"state": "new"}
    jobs.start("a", KINDS["encoder"](), work)
    while jobs.status("a").get("done") != 1:
        time.sleep(0.01)
    running = jobs.status("a")
    assert running["state"] == "running"
    assert running["seconds_left"] is not None
    go.set()
    assert wait(jobs, "a")["result"] == {"family": "bert"}
    assert jobs.start("a", KINDS["encoder"](), work)["state"] == "done"  # it does not run again


def test_errors_and_stops() -> None:
    jobs = Jobs()

    def fails(model: Model, progress: OnProgress) -> dict[str, Any]:
        raise InputError("no rows")

    def breaks(model: Model, progress: OnProgress) -> dict[str, Any]:
        raise ZeroDivisionError

    def endless(model: Model, progress: OnProgress) -> dict[str, Any]:
        while True:
            progress(Progress("rows", 1, 2))
            time.sleep(0.01)

    jobs.start("fails", KINDS["encoder"](), fails)
    assert wait(jobs, "fails")["error"] == "no rows"
    jobs.start("breaks", KINDS["encoder"](), breaks)
    assert "ZeroDivisionError" in wait(jobs, "breaks")["error"]
    jobs.start("endless", KINDS["encoder"](), endless)
    jobs.stop("endless")
    assert wait(jobs, "endless")["error"] == "stopped"
    assert jobs.stop("unknown") == {"state": "new"}


def test_a_copy_has_its_own_network() -> None:
    model = KINDS["encoder"]()
    other = copy_of(model)
    assert other.network is not model.network
    assert next(other.network.parameters()).data_ptr() != next(model.network.parameters()).data_ptr()


def test_work_in_this_thread() -> None:
    jobs = Jobs()
    events: list[Progress] = []

    def work(model: Model, progress: OnProgress) -> dict[str, Any]:
        progress(Progress("rows", 1, 1))
        return {"rows": 1}

    jobs.run("a", KINDS["encoder"](), work, events.append)
    assert jobs.status("a")["result"] == {"rows": 1}
    assert events == [Progress("rows", 1, 1)]
