"""metrics.jsonl: one line per event of a training."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.checkpoint.manifest import METRICS
from regard.errors import FolderError
from regard.foreign import path_inside, read_bytes
from regard.progress import Progress

MAX_BYTES = 1 << 30  # of metrics.jsonl; a million events take 0.2 GB


@dataclass(frozen=True)
class TrainingEvent(Progress):
    """Progress of a training, a line of metrics.jsonl.

    `stage` is `read` (bytes of text tokenized), `begin`, `plan` (memory), `log` (loss of a step), `score` (validation
    scores), `fit` (work before the first step), `test` (work after the last one, such as scoring test rows) or `note`
    (a message); `done` and `total` count optimizer steps, bytes while reading, and what `values` say in `fit` and
    `test`.
    """

    epoch: float = 0.0

    @property
    def kind(self) -> str:
        """The stage, by its name in metrics.jsonl."""
        return self.stage

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return self.done

    @property
    def steps(self) -> int:
        """Optimizer steps in total."""
        return self.total or 0

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "step": self.step, "epoch": round(self.epoch, 4), **_known(self.values)}


def _known(value: Any) -> Any:
    """With null for numbers that are not finite, which JSON does not have: the loss of a skipped step."""
    if isinstance(value, Mapping):
        return {name: _known(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


OnTrainingEvent = Callable[[TrainingEvent], None]


def event_numbers(event: TrainingEvent) -> Iterator[tuple[str, float]]:
    """The numbers of an event by name, such as train/loss and dev/accuracy; only losses and scores have some."""
    if event.kind not in ("log", "score"):
        return
    part = "dev" if event.kind == "score" else "train"
    for name, value in {**event.values, **event.values.get("scores", {})}.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{part}/{name}", float(value)


class Recorder:
    """Appends events to a file. A resumed run first removes those after its saved state."""

    def __init__(self, folder: Path, *, step: int = 0, progress: OnTrainingEvent | None = None) -> None:
        self.path, self.progress = folder / METRICS, progress
        lines = [line for line in read_metrics(folder) if line["step"] <= step] if step else []
        new_file = self.path.with_suffix(".part")
        with _written(self.path):
            new_file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            new_file.replace(self.path)

    def __call__(self, event: TrainingEvent) -> None:
        with _written(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event.json()) + "\n")
        if self.progress is not None:
            self.progress(event)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path} could not be written: {error.strerror or error}. The state saved before is kept: fix that, then "
            "go on with --resume."
        ) from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The events of metrics.jsonl, without incomplete lines."""
    try:
        text = read_bytes(path_inside(folder, METRICS), limit=MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    events = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            event = json.loads(line)
            if _is_event(event):
                events.append(event)
    return events


def _is_event(line: Any) -> bool:
    """Whether a line has the fields of its kind of event."""
    if not isinstance(line, dict) or not isinstance(line.get("kind"), str) or not _is_step(line.get("step")):
        return False
    if line["kind"] == "log":
        return "loss" in line and _is_number(line["loss"])
    if line["kind"] == "score":
        return _is_score(line.get("scores"), line.get("main"), line.get("dev_loss")) and "best" in line
    return True


def _is_score(scores: Any, main: Any, dev_loss: Any) -> bool:
    if not isinstance(scores, dict) or not isinstance(main, str) or scores.get(main) is None:
        return False
    return all(map(_is_number, (dev_loss, *scores.values())))


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_number(value: Any) -> bool:
    """A float, or null for one that is not finite."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62
    return value is None or isinstance(value, float) or whole
