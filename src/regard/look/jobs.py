"""Work over a data set while the page stays usable: one thread for each job, with progress, on a copy of the model."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError, shorten
from regard.progress import OnProgress, Progress

if TYPE_CHECKING:  # `predict` is imported by those who have a model
    from regard.predict.model import Model

Work = Callable[["Model", OnProgress], dict[str, Any]]


class _Stopped(Exception):
    """The page asked to stop."""


@dataclass(eq=False)
class LookJob:
    """One piece of work: how far it is, and its result or its error."""

    started: float = field(default_factory=time.monotonic)
    done: int = 0
    total: int | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    stopped: bool = False

    def json(self) -> dict[str, Any]:
        """What the page shows: progress with the seconds that are left, and the result."""
        elapsed = time.monotonic() - self.started
        left = None
        if self.total and self.done and self.result is None:
            left = round(elapsed / self.done * (self.total - self.done), 1)
        state = "running" if self.result is None and self.error is None else "done"
        return {"state": state, "done": self.done, "total": self.total, "seconds_left": left, "error": self.error,
                "result": self.result}  # fmt: skip


class Jobs:
    """Jobs by name; a name runs once, and again only after an error or a stop."""

    def __init__(self) -> None:
        self._jobs: dict[str, LookJob] = {}
        self._lock = threading.Lock()

    def status(self, name: str) -> dict[str, Any]:
        job = self._jobs.get(name)
        return {"state": "new"} if job is None else job.json()

    def start(self, name: str, model: Model, work: Work) -> dict[str, Any]:
        """Start the work, if it does not run yet; where it stands."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.error is not None:
                job = self._jobs[name] = LookJob()
                threading.Thread(target=_run, args=(job, model, work), daemon=True).start()
            return job.json()

    def run(self, name: str, model: Model, work: Work, progress: OnProgress | None = None) -> None:
        """Do the work in this thread; its result or its error is kept under the name."""
        job = self._jobs[name] = LookJob()
        _run(job, model, work, progress)

    def stop(self, name: str) -> dict[str, Any]:
        """Stop the work at its next step."""
        if name in self._jobs:
            self._jobs[name].stopped = True
        return self.status(name)


def _run(job: LookJob, model: Model, work: Work, outer: OnProgress | None = None) -> None:
    def progress(event: Progress) -> None:
        job.done, job.total = event.done, event.total
        if outer is not None:
            outer(event)
        if job.stopped:
            raise _Stopped

    try:
        job.result = work(copy_of(model), progress)
    except _Stopped:
        job.error = "stopped"
    except RegardError as error:
        job.error = str(error)
    except Exception as error:  # a job has no caller that could report it
        job.error = f"the computation failed: {shorten(repr(error), 300)}"


def copy_of(model: Model) -> Model:
    """The same model with its own network, so that hooks of two threads do not meet."""
    checkpoint = replace(model.checkpoint, network=copy.deepcopy(model.network))
    return type(model)(checkpoint, model.tokenizer, folder=model.folder)
