"""The progress of a training on stderr."""

from __future__ import annotations

import os
import pty
import threading
from pathlib import Path

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


def test_work_after_a_training_is_shown_with_its_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, str]] = []
    now = [0.0]
    shown = TrainingProgress()
    monkeypatch.setattr(shown, "_show", lambda what, _done, _total, left: lines.append((what, left)))
    monkeypatch.setattr("regard.cli.training_progress.time.monotonic", lambda: now[0])
    for _ in range(2):  # of two models
        for done in (0, 500, 2000):
            shown(TrainingEvent("test", done, 2000, {"what": "scoring", "unit": "rows"}))
            now[0] += 10
    expected = [
        ("scoring 0 of 2,000 rows", ""),
        ("scoring 500 of 2,000 rows", "0:30 left"),
        ("scoring 2,000 of 2,000 rows", "0:00 left"),
    ]
    assert lines == 2 * expected


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


def test_long_work_before_the_first_step_is_reported_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("regard.cli.training_progress.time.monotonic", lambda: now[0])
    progress = TrainingProgress()
    for done in range(0, 110, 10):  # 100 seconds
        progress(TrainingEvent("fit", done, 100, {"what": "learning similarity"}))
        now[0] += 10
    reported = capsys.readouterr().err.splitlines()
    assert reported == [f"learning similarity: {left} left" for left in ("1:30", "1:00", "0:30")]


def test_long_trainings_are_reported_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are repeated, which are not scored; and not right after a score."""
    now = [0.0]
    monkeypatch.setattr("regard.cli.training_progress.time.monotonic", lambda: now[0])
    progress = TrainingProgress()
    progress(TrainingEvent("begin", 0, 60, {"lines": [], "trainings": 2}))
    for step in range(10, 70, 10):
        now[0] += 10
        progress(TrainingEvent("log", step, 60, {"loss": 0.5, "tokens_per_second": 9.0}, epoch=step / 60))
        if step == 30:
            scores = {"main": "accuracy", "scores": {"accuracy": 0.8}, "dev_loss": 0.5, "best": True}
            progress(TrainingEvent("score", step, 60, scores, epoch=0.5))
    progress(TrainingEvent("note", 0, 60, {"text": "again", "repeat": True}))
    for step in range(10, 70, 10):
        now[0] += 10
        progress(TrainingEvent("log", step, 60, {"loss": 0.4, "tokens_per_second": 9.0}, epoch=step / 60))
    assert capsys.readouterr().err.splitlines() == [
        "training 1 of 2, epoch 0.3, step 20 of 60: loss 0.500, 1:40 left",
        "epoch 0.5, step 30 of 60: accuracy 0.8000, validation loss 0.5000, the best so far",
        "again",
        "training 2 of 2, epoch 0.3, step 20 of 60: loss 0.400, 0:40 left",
        "training 2 of 2, epoch 0.8, step 50 of 60: loss 0.400, 0:10 left",
    ]


def test_last_weights_that_are_kept_are_not_called_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TrainingProgress()
    for step, value, more in ((6, 0.75, {}), (24, 0.7, {"keeps_last": True})):
        scores = {"main": "accuracy", "scores": {"accuracy": value}, "dev_loss": 0.5, "best": True, **more}
        progress(TrainingEvent("score", step, 24, scores))
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("the best so far")
    assert last.endswith("as good as the best within the 95 % interval: the last weights are kept")


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


def test_a_second_network_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TrainingProgress()
    for loss in (0.7, 0.5, 0.3):
        progress(TrainingEvent("log", 1, 3, {"loss": loss, "tokens_per_second": 1.0}))
    progress(TrainingEvent("note", 0, 3, {"text": "training again on all 40 rows", "refit": True}))
    progress(TrainingEvent("log", 1, 3, {"loss": 0.8, "tokens_per_second": 1.0}))
    assert progress.number == 2
    assert capsys.readouterr().err == "training again on all 40 rows\n"


def test_what_an_earlier_training_said_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    progress = TrainingProgress()
    for number in (1, 2):
        progress(TrainingEvent("begin", 0, 2, {"lines": ["data: reviews", f"chosen: lr {number}"]}))
    assert capsys.readouterr().err.splitlines() == ["data: reviews", "chosen: lr 1", "chosen: lr 2"]


def test_a_repeated_training_is_counted() -> None:
    progress = TrainingProgress()
    progress(TrainingEvent("note", 0, 2, {"text": "training again with another seed (2 of 2)", "repeat": True}))
    progress(TrainingEvent("note", 0, 2, {"text": "no better than guessing"}))
    assert progress.number == 2


def test_the_time_left_includes_the_trainings_after_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = TrainingProgress()
    lines: list[tuple[str, str]] = []
    clock = {(False, 10): 0.0, (False, 20): 10.0, (True, 10): 40.0, (True, 20): 50.0}
    now = [0.0]
    monkeypatch.setattr("regard.cli.training_progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr(shown, "_show", lambda what, _done, _total, left: lines.append((what, left)))
    values = {"loss": 0.5, "tokens_per_second": 100.0}
    shown(TrainingEvent("begin", 0, 40, {"lines": [], "trainings": 2}))
    for again in (False, True):
        if again:
            shown(TrainingEvent("note", 0, 40, {"text": "training again", "repeat": True}))
        for step in (10, 20):
            now[0] = clock[again, step]
            shown(TrainingEvent("log", step, 40, values, epoch=step / 20))
    expected = [("training", ""), ("training 1 of 2, epoch 0.5", ""), ("training 1 of 2, epoch 1.0", "1:00 left")]
    expected += [("training 2 of 2, epoch 0.5", ""), ("training 2 of 2, epoch 1.0", "0:20 left")]
    assert [(what, left.split("  ")[-1] if "left" in left else "") for what, left in lines] == expected
