"""Views over a data set as JSON. Each is a job: the page asks until it is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.errors import InputError, did_you_mean
from regard.look.session import LookSession
from regard.look.views.fields import Fields
from regard.predict.model import Model
from regard.progress import OnProgress

ROWS = {"words": 400, "heads": 100, "faithfulness": 50}


def words(model: Model, data: Path, progress: OnProgress) -> dict[str, Any]:
    """The words that the model relies on, by class."""
    from regard.look.dataset.word_importance import word_importance

    return word_importance(model, data, max_rows=ROWS["words"], progress=progress).json()


def heads(model: Model, data: Path, progress: OnProgress) -> dict[str, Any]:
    """What each head is worth."""
    from regard.look.dataset.head_importance import head_importance

    return head_importance(model, data, max_rows=ROWS["heads"], progress=progress).json()


def faithfulness(model: Model, data: Path, progress: OnProgress) -> dict[str, Any]:
    """How faithful each method is."""
    from regard.look.dataset.faithfulness import faithfulness

    return faithfulness(model, data, max_rows=ROWS["faithfulness"], progress=progress).json()


WORK: dict[str, Callable[[Model, Path, OnProgress], dict[str, Any]]] = {
    "words": words,
    "heads": heads,
    "faithfulness": faithfulness,
}


def run_now(session: LookSession, name: str, progress: OnProgress | None) -> None:
    """Run a job to its end in this thread."""
    data = session.defaults.data
    assert data is not None
    work = WORK[name]
    session.jobs.run(name, session.model(0), lambda model, report: work(model, data, report), progress)


def job(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Where a job stands; `action` starts or stops it."""
    name = fields.text("name")
    if name not in WORK:
        raise InputError(f'there is no job "{name[:80]}".{did_you_mean(name, WORK)}')
    data = session.defaults.data
    if data is None:
        raise InputError("this view needs a data set; start the page with one: regard look MODEL --data FILE.")
    action = fields.text("action", "status")
    if action == "start":
        work = WORK[name]
        return session.jobs.start(name, session.model(0), lambda model, progress: work(model, data, progress))
    return session.jobs.stop(name) if action == "stop" else session.jobs.status(name)
