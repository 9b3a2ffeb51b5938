"""Progress of a training on stderr: a bar in a terminal; in a log a line per evaluation, and in long work at times."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from regard.cli.output import format_bytes, print_status
from regard.errors import escape_control_characters, pluralize

if TYPE_CHECKING:
    from regard.progress import Progress
    from regard.training.output.metrics_log import TrainingEvent


BARS = "▁▂▃▄▅▆▇█"
FIRST_SECONDS, QUIET_SECONDS = 10, 30  # without a terminal, long work is reported after so long, then so often
TRAINING = "training"
SHOWN = ("fit", "log", "test")  # events of a training that move the bar


class TrainingProgress:
    """Receives the events of a training."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.task: Any = None
        self.score = ""
        self.first: tuple[int, float] | None = None
        self.work = ""
        self.printed = 0.0
        self.number, self.trainings = 1, 1  # which of how many trainings this is
        self.begin_lines: set[str] = set()  # of earlier trainings, which are not printed again

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, event: TrainingEvent) -> None:
        if event.kind == "read":
            self._show("reading", event.step, event.steps, f"{pluralize(event.values['tokens'], 'token')}")
        elif event.kind == "begin":
            self._begin(event)
        elif event.kind == "plan":
            size = format_bytes(event.values["bytes"])
            self._print(f"memory: about {size}, {event.values['tokens_at_once']:,} tokens at once")
        elif event.kind == "fit":
            self._fit(event, event.values["what"])
        elif event.kind == "test":
            what, unit = event.values["what"], event.values["unit"]
            self._fit(event, what, f"{what} {event.step:,} of {event.steps:,} {unit}")
        elif event.kind == "log":
            self._log(event)
        elif event.kind == "score":
            self._score(event)
        elif event.kind == "note":
            again = bool(event.values.get("refit") or event.values.get("repeat"))
            self.number += again
            self.first = None if again else self.first
            self._print(f"step {event.step}: {event.values['text']}" if event.step else event.values["text"])

    def _begin(self, event: TrainingEvent) -> None:
        for line in event.values["lines"]:
            if line not in self.begin_lines:
                self._print(line)
        self.begin_lines.update(event.values["lines"])
        self.first = None
        self.number, self.trainings = 1, event.values.get("trainings", 1)
        self._show("training", 0, event.steps, "")

    def _show(self, what: str, done: int, total: int, now: str) -> None:
        """The progress bar, in a terminal."""
        if not sys.stderr.isatty():
            return
        if self.bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[now]}"))
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(what, total=total, now=now)
            self.bar.start()
        self.bar.update(self.task, completed=done, total=total, description=what, now=now)

    def _log(self, event: TrainingEvent) -> None:
        if self.first is None:
            self.first = (event.step, time.monotonic())
        parts = [f"loss {event.values['loss']:.3f}"]
        parts += [self.score] if self.score else []
        later = max(self.trainings - self.number, 0) * event.steps
        parts += [f"{event.values['tokens_per_second']:,.0f} tokens/s", self._left(event, later)]
        which = f"training {self.number} of {self.trainings}, " if self.trainings > 1 else ""
        where = f"{which}epoch {event.epoch:.1f}"
        self._watch(TRAINING)
        if parts[-1] and event.step < event.steps and self._is_due():
            self._print(f"{where}, step {event.step} of {event.steps}: {parts[0]}, {parts[-1]}")
        self._show(where, event.step, event.steps, "  ".join(parts).rstrip())

    def _watch(self, what: str) -> None:
        """The work that goes on now."""
        if what != self.work:
            self.work, self.printed = what, time.monotonic() + FIRST_SECONDS - QUIET_SECONDS

    def _is_due(self) -> bool:
        """Whether a line about this work is due: without a terminal, at times."""
        now = time.monotonic()
        if sys.stderr.isatty() or now - self.printed < QUIET_SECONDS:
            return False
        self.printed = now
        return True

    def _fit(self, event: TrainingEvent, what: str, shown: str = "") -> None:
        """Work before the first training step, such as fitting a linear model, or after the last one."""
        if what != self.work or self.first is None:
            self.first = (event.step, time.monotonic())
        self._watch(what)
        if event.step < event.steps and self._is_due():
            self._print(f"{shown or what}: {self._left(event)}")
        self._show(shown or what, event.step, event.steps, self._left(event))
        if event.step == event.steps:
            self.first = None

    def _left(self, event: TrainingEvent, later: int = 0) -> str:
        """The time left for the steps of this training, and for as many as `later` of trainings after it."""
        if self.first is None:
            return ""
        step, then = self.first
        if event.step <= step:
            return ""
        seconds = (time.monotonic() - then) / (event.step - step) * (event.steps - event.step + later)
        minutes, seconds = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d} left" if hours else f"{minutes}:{seconds:02d} left"

    def _score(self, event: TrainingEvent) -> None:
        main = event.values["main"]
        value = event.values["scores"][main]
        self.score = f"{main} {value:.4f}" if abs(value) < 10 else f"{main} {value:.4g}"
        best = ", the best so far" if event.values["best"] and event.steps else ""
        if event.values.get("keeps_last"):
            best = ", as good as the best within the 95 % interval: the last weights are kept"
        where = f"epoch {event.epoch:.1f}, step {event.step} of {event.steps}"
        if event.step == 0:
            where = "linear probe, before the first step" if event.steps else "fitted"
        self._print(f"{where}: {self.score}, validation loss {event.values['dev_loss']:.4f}{best}")
        self.printed = time.monotonic()

    def _print(self, line: str) -> None:
        if self.bar is not None:
            self.bar.console.print(escape_control_characters(line), highlight=False, markup=False, soft_wrap=True)
        else:
            print_status(line)


class StepProgress:
    """A line per step on stderr; in a terminal also a bar with the time left of the work in it."""

    def __init__(self) -> None:
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.bar is not None:
            self.bar.__exit__(None, None, None)
            self.bar = None

    def on_step(self, progress: Progress, text: str) -> None:
        """The next step, with a text about it."""
        self._stop()
        print_status(f"[{progress.done}/{progress.total}] {text}")

    def on_rows(self, progress: Progress, what: str) -> None:
        """Rows of work inside of a step."""
        from regard.training.output.metrics_log import TrainingEvent

        self.on_training(TrainingEvent("test", progress.done, progress.total, {"what": what, "unit": "rows"}))

    def on_training(self, event: TrainingEvent) -> None:
        """A training inside of a step."""
        if not sys.stderr.isatty() or event.kind not in SHOWN:
            return
        if self.bar is None:
            self.bar = TrainingProgress()
        self.bar(event)


def small_curves(metrics: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The loss and the score in little drawings, from their first to their last, of the events in metrics.jsonl."""
    curves = {"loss": [event["loss"] for event in metrics if event["kind"] == "log" and event["loss"] is not None]}
    scores = [event for event in metrics if event["kind"] == "score"]
    if scores:
        main = scores[-1]["main"]
        curves[f"dev {main}"] = [event["scores"][main] for event in scores if event["scores"].get(main) is not None]
    return [
        (name, f"{values[0]:.3f} {spark(values)} {values[-1]:.3f}")
        for name, values in curves.items()
        if len(values) > 1
    ]


def spark(values: Sequence[float], max_bars: int = 32) -> str:
    """Numbers as bars of eight heights; many numbers are averaged in groups."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    size = min(len(finite), max_bars)
    parts = [finite[i * len(finite) // size : (i + 1) * len(finite) // size] for i in range(size)]
    means = [sum(part) / len(part) for part in parts]
    low, high = min(means), max(means)
    return "".join(BARS[int((value - low) / ((high - low) or 1.0) * (len(BARS) - 1) + 0.5)] for value in means)


@contextlib.contextmanager
def same_command_goes_on(out: Path | None) -> Iterator[None]:
    """Say how to go on with work that was stopped by a signal, in a command that needs no --resume."""
    from regard.training.engine.loop import Stopped

    try:
        yield
    except KeyboardInterrupt as stop:  # between two trainings
        advice = "Nothing is kept without --out." if out is None else "Run the same command again to go on."
        raise Stopped("stopped.", signal=signal.SIGINT, advice=advice) from stop
    except Stopped as stop:
        if out is None:
            raise Stopped("stopped.", signal=stop.signal, advice="Nothing is kept without --out.") from stop
        raise Stopped(stop.words, signal=stop.signal, advice="Run the same command again to go on.") from stop
