"""What a training writes down as it goes: metrics.jsonl, one line an event."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import FolderError

METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class Event:
    """Something to tell: `log` (the loss), `score` (dev), `note` (words)."""

    kind: str
    step: int
    steps: int
    epoch: float
    values: dict[str, Any]

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "step": self.step, "epoch": round(self.epoch, 4), **_known(self.values)}


def _known(value: Any) -> Any:
    """With null for what is no number, which JSON cannot say: the loss of a step that was skipped."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


Tell = Callable[[Event], None]


class Recorder:
    """Appends events to a file. A resumed run first forgets what came after its state."""

    def __init__(self, folder: Path, *, step: int = 0, tell: Tell | None = None) -> None:
        self.path, self.tell = folder / METRICS, tell
        kept = [line for line in read_metrics(folder) if line["step"] <= step] if step else []
        fresh = self.path.with_suffix(".part")
        with _written(self.path):
            fresh.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            fresh.replace(self.path)

    def __call__(self, event: Event) -> None:
        with _written(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event.json()) + "\n")
        if self.tell is not None:
            self.tell(event)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path} could not be written: {error.strerror or error}. The state saved before is kept: mend that, then "
            "go on with --resume."
        ) from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; one that a kill cut short is left out."""
    path, found = folder / METRICS, []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found
