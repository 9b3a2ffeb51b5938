"""The progress of a training on stderr."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.cli.helpers import QUICK, start

from regard.cli.training_progress import StepProgress, TrainingProgress, same_command_goes_on, small_curves
from regard.progress import Progress
from regard.training.engine.loop import Stopped
from regard.training.output.metrics_log import TrainingEvent


def test_a_person_sees_a_bar(reviews_csv: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = start("train", reviews_csv, "--out", tmp_path / "run", *QUICK, "--log-every", "1", err=theirs)
    os.close(theirs)
    recorded: list[bytes] = []

    def look() -> None:
        try:
            while some := os.read(ours, 4096):
                recorded.append(some)
        except OSError:  # the other side is closed
            pass

    thread = threading.Thread(target=look)
    thread.start()
    out, _ = child.communicate(timeout=100)
    thread.join(10)
    os.close(ours)
    words = b"".join(recorded).decode("utf-8", "replace")
    assert child.returncode == 0, words
    assert "tokens/s" in words
    assert "left" in words
    assert "tokens/s" not in out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (Path("runs/a"), "stopped at step 3. Run the same command again to go on."),
        (None, "stopped. Nothing is kept without --out."),
    ],
)
def test_a_command_without_resume_says_how_to_go_on(out: Path | None, message: str) -> None:
    with pytest.raises(Stopped) as caught, same_command_goes_on(out):
        raise Stopped("stopped at step 3.", signal=2)
    assert (caught.value.with_flags, caught.value.signal) == (message, 2)
    with pytest.raises(Stopped, match=message.split(". ")[1]) as caught, same_command_goes_on(out):
        raise KeyboardInterrupt
    assert caught.value.signal == 2


FIT = TrainingEvent("fit", 1, 4, {"what": "fitting"})


def test_without_a_terminal_steps_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with StepProgress() as shown:
        shown.on_step(Progress("models", 1, 3), "ngram")
        shown.on_training(FIT)
        shown.on_rows(Progress("rows", 5, 9), "answers")
        assert shown.bar is None
    assert capsys.readouterr().err == "[1/3] ngram\n"


def test_a_bar_ends_with_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with StepProgress() as shown:
        shown.on_training(TrainingEvent("note", 1, 4, {"text": "no bar"}))
        shown.on_training(FIT)
        assert shown.bar.bar.tasks[0].completed == 1
        shown.on_step(Progress("models", 2, 3), "minilm")
        assert shown.bar is None


def fit(what: str, done: int, total: int) -> TrainingEvent:
    return TrainingEvent("fit", done, total, {"what": what})


def log(step: int, steps: int, loss: float = 0.5) -> TrainingEvent:
    return TrainingEvent("log", step, steps, {"loss": loss, "tokens_per_second": 9.0}, epoch=step / steps)


def score(step: int, steps: int, accuracy: float, **values: Any) -> TrainingEvent:
    content = {"main": "accuracy", "scores": {"accuracy": accuracy}, "dev_loss": 0.5, "best": True, **values}
    return TrainingEvent("score", step, steps, content, epoch=step / steps)


def note(text: str, **values: Any) -> TrainingEvent:
    return TrainingEvent("note", 0, 60, {"text": text, **values})


def begin(*lines: str, trainings: int = 1) -> TrainingEvent:
    return TrainingEvent("begin", 0, 60, {"lines": list(lines), "trainings": trainings})


LINES = {  # events, ten seconds after each other, and what is printed without a terminal
    "long work before the first step": (
        [fit("learning similarity", done, 100) for done in range(0, 110, 10)],
        [f"learning similarity: {left} left" for left in ("1:30", "1:00", "0:30")],
    ),
    "long trainings, also one that is repeated; not right after a score": (
        [
            begin(trainings=2),
            *(log(step, 60) for step in (10, 20, 30)),
            score(30, 60, 0.8),
            *(log(step, 60) for step in (40, 50, 60)),
            note("again", repeat=True),
            *(log(step, 60, 0.4) for step in (10, 20, 30, 40, 50, 60)),
        ],
        [
            "training 1 of 2, epoch 0.3, step 20 of 60: loss 0.500, 1:40 left",
            "epoch 0.5, step 30 of 60: accuracy 0.8000, validation loss 0.5000, the best so far",
            "again",
            "training 2 of 2, epoch 0.3, step 20 of 60: loss 0.400, 0:40 left",
            "training 2 of 2, epoch 0.8, step 50 of 60: loss 0.400, 0:10 left",
        ],
    ),
    "last weights are not called the best": (
        [score(6, 24, 0.75), score(24, 24, 0.7, keeps_last=True)],
        [
            "epoch 0.2, step 6 of 24: accuracy 0.7500, validation loss 0.5000, the best so far",
            (
                "epoch 1.0, step 24 of 24: accuracy 0.7000, validation loss 0.5000, "
                "as good as the best within the 95 % interval: the last weights are kept"
            ),
        ],
    ),
    "lines of an earlier training are not repeated": (
        [begin("data: reviews", "chosen: lr 1"), begin("data: reviews", "chosen: lr 2")],
        ["data: reviews", "chosen: lr 1", "chosen: lr 2"],
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_without_a_terminal(name: str, capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    events, expected = LINES[name]
    progress = TrainingProgress()
    for event in events:
        progress(event)
        clock[0] += 10
    assert capsys.readouterr().err.splitlines() == expected


SCORING = [
    TrainingEvent("test", done, 2000, {"what": "scoring", "unit": "rows"}) for _ in range(2) for done in (0, 500, 2000)
]
TRAININGS = [begin(trainings=2), log(10, 60), log(20, 60), note("again", repeat=True), log(10, 60), log(20, 60)]
BARS = {  # events, ten seconds after each other, and the bar after each in a terminal: its text and the time left
    "work after a training, of two models": (
        SCORING,
        2
        * [
            ("scoring 0 of 2,000 rows", ""),
            ("scoring 500 of 2,000 rows", "0:30 left"),
            ("scoring 2,000 of 2,000 rows", "0:00 left"),
        ],
    ),
    "the time left includes the trainings after this one": (
        TRAININGS,
        [
            ("training", ""),
            ("training 1 of 2, epoch 0.2", ""),
            ("training 1 of 2, epoch 0.3", "1:40 left"),
            ("training 1 of 2, epoch 0.3", "1:40 left"),
            ("training 2 of 2, epoch 0.2", ""),
            ("training 2 of 2, epoch 0.3", "0:40 left"),
        ],
    ),
}


@pytest.mark.parametrize("name", BARS)
def test_a_bar_in_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    events, expected = BARS[name]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    shown = []
    with TrainingProgress() as progress:
        for event in events:
            progress(event)
            (task,) = progress.bar.tasks
            left = task.fields["now"].split("  ")[-1]
            shown.append((task.description, left if "left" in left else ""))
            clock[0] += 10
    assert shown == expected


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which tests change."""
    now = [0.0]
    monkeypatch.setattr("regard.cli.training_progress.time.monotonic", lambda: now[0])
    return now


def test_small_curves_of_the_loss_and_the_score() -> None:
    logs = [{"kind": "log", "step": step, "loss": loss} for step, loss in enumerate((2.0, None, 1.0, 0.5))]
    scores = [
        {"kind": "score", "step": step, "main": "f1", "scores": {"f1": value, "recall": 1.0}}
        for step, value in enumerate((0.25, 0.75))
    ]
    note = {"kind": "note", "step": 1, "text": "again"}
    expected = [("loss", "2.000 █▃▁ 0.500"), ("dev f1", "0.250 ▁█ 0.750")]
    assert small_curves([*logs, note, *scores]) == expected
    assert small_curves([*logs[:2], *scores[:1]]) == []
