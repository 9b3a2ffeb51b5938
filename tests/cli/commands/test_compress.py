"""`regard compress`: table, JSON, and the exit status below the floor."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.helpers import run

from regard.cli.commands.compress import CandidateProgress
from regard.compression import compress as module
from regard.compression.compress import BelowFloor
from regard.compression.result import CandidateResult, Compression
from regard.metrics.confidence import Score
from regard.progress import Progress
from regard.training.output.metrics_log import TrainingEvent

SCORE = Score(0.9, 0.88, 0.92)
TIMES = {"1": 1.0, "24": 2.0, "128": 3.0}
TEACHER = CandidateResult("teacher", "teacher", {"accuracy": SCORE}, latency_ms=TIMES, bytes=9_000_000)
INT8 = CandidateResult("int8", "int8 products", {"accuracy": SCORE}, SCORE, latency_ms=TIMES, is_chosen=True)
BROKEN = CandidateResult("static", "static", error="it has no vectors")
RESULT = Compression("classify", "accuracy", 0.99, TEACHER, (INT8, BROKEN), "int8", "small", 100, 20, ("a note",))


def test_a_table_and_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {}

    def compress(*arguments: Any, **given: Any) -> Compression:
        options.update(given, arguments=arguments)
        return RESULT

    monkeypatch.setattr(module, "compress", compress)
    status, out, err = run(capsys, "compress", "runs/a", "rows.csv", "--out", "small", "--floor", "0.95", "--epochs", 2)
    assert status == 0
    assert out.splitlines()[0].split()[:3] == ["model", "accuracy", "difference"]
    assert "chosen of 2 candidates: int8, in small" in out
    assert "Note: a note." in out
    assert "static: it has no vectors" in err
    assert (options["floor"], options["epochs"], options["arguments"]) == (0.95, 2.0, ("runs/a", "rows.csv"))
    status, out, _ = run(capsys, "compress", "runs/a", "rows.csv", "--out", "small", "--json")
    values = json.loads(out)
    assert (values["chosen"], values["candidates"][0]["kept"]) == ("int8", True)


def test_a_training_has_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    event = TrainingEvent("log", 2, 10, {"loss": 0.5, "tokens_per_second": 10.0}, epoch=1.0)
    with CandidateProgress() as shown:
        shown.on_training(event)
        assert shown.bar.bar is not None
        shown.on_progress(Progress("candidates", 1, 2, {"name": "int8"}))
        assert shown.bar is None


def test_answers_of_the_teacher_have_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with CandidateProgress() as shown:
        shown.on_progress(Progress("teacher", 512, 1024))
        assert shown.bar.bar.tasks[0].description == "answers of the teacher 512 of 1,024 rows"
        shown.on_progress(Progress("candidates", 1, 2, {"name": "int8"}))
        shown.on_progress(Progress("rows", 100, 300))
        assert shown.bar.bar.tasks[0].description == "scoring 100 of 300 rows"


def test_below_the_floor_the_table_is_shown_and_the_status_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compress(*_: Any, **__: Any) -> Compression:
        raise BelowFloor("no candidate keeps 99.0% of it.", RESULT)

    monkeypatch.setattr(module, "compress", compress)
    status, out, err = run(capsys, "compress", "runs/a", "rows.csv", "--out", "small")
    assert status == 1
    assert "teacher" in out
    assert "no candidate keeps 99.0% of it." in err
