"""What a training writes down as it goes: metrics.jsonl, one line an event."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        return {"kind": self.kind, "step": self.step, "epoch": round(self.epoch, 4), **self.values}


Tell = Callable[[Event], None]


class Recorder:
    """Appends events to a file. A resumed run first forgets what came after its state."""

    def __init__(self, folder: Path, *, step: int = 0, tell: Tell | None = None) -> None:
        self.path, self.tell = folder / METRICS, tell
        kept = [line for line in read_metrics(folder) if line["step"] <= step] if step else []
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def __call__(self, event: Event) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event.json()) + "\n")
        if self.tell is not None:
            self.tell(event)


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
