"""Training within a time budget: with fewer steps if all of them would take too long."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.data.atomic import atomic_text_file
from regard.errors import FolderError, InputError, setting
from regard.training.head_init.similarity import LEARNING
from regard.training.load_data import LabeledData
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.train import train

UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}
TOLERANCE = 1.1  # of the budget, before a training is shortened
SAFETY = 0.9  # part of the budget that a shortened training is planned for
SIMILARITY = 0.5  # part of the budget that similarity may be learned for, before the training on the labels


def parse_duration(value: str | float | None) -> float | None:
    """A time budget in seconds: 90, "90s", "30m" or "2h"."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value))
    if match is None or float(match[1]) == 0:
        raise InputError(f"{setting('time')} is {value!r}, expected a duration such as 90s, 30m or 2h.")
    return float(match[1]) * UNITS[match[2]]


class OverBudget(Exception):
    """A training that would take longer than its budget; `steps` of all `planned` ones is what the budget allows."""

    def __init__(self, steps: int, planned: int) -> None:
        super().__init__(steps)
        self.steps, self.planned = steps, planned


class SlowSimilarity(Exception):
    """A training that would learn similarity for most of its budget, before the first step on the labels."""


@dataclass(frozen=True)
class ShortenedTraining:
    """How many steps of a training fit into its time budget, and whether it does not learn similarity first."""

    steps: int | None  # None if all fit
    planned: int | None  # None in the files of older comparisons
    seconds: float  # the budget
    similarity: bool = True

    def applied(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the shortened training."""
        changed = dict(settings) if self.steps is None else with_steps(settings, self.steps)
        return changed if self.similarity else {**changed, "head_init": "random"}


class BudgetGuard:
    """Receives the events of a training, and ends it early on if it would take too long."""

    def __init__(self, seconds: float, forward: OnTrainingEvent | None) -> None:
        self.seconds, self.forward = seconds, forward
        self.first: tuple[str, int, float] | None = None  # kind, step and time of the first event of its kind
        self.started = time.monotonic()

    def __call__(self, event: TrainingEvent) -> None:
        if self.forward is not None:
            self.forward(event)
        learns_similarity = event.kind == "fit" and event.values.get("what") == LEARNING
        if event.kind != "log" and not learns_similarity:
            return
        now = time.monotonic()
        if self.first is None or self.first[0] != event.kind:
            self.first = event.kind, event.step, now
            return
        _, step, at = self.first
        per_step = (now - at) / max(event.step - step, 1)
        expected = (at - self.started) + per_step * (event.steps - step)
        if learns_similarity and expected > SIMILARITY * self.seconds:
            raise SlowSimilarity
        if not learns_similarity and expected > TOLERANCE * self.seconds:
            steps = int((SAFETY * self.seconds - (at - self.started)) / per_step) + step
            raise OverBudget(max(1, steps), event.steps)


def train_within(
    seconds: float | None,
    folder: Path,
    data: LabeledData,
    *,
    preset: str | None,
    start: str | None,
    settings: Mapping[str, Any],
    training: OnTrainingEvent | None,
) -> float:
    """Train into a folder, or go on with a training that was stopped there; the duration in seconds.

    The number of steps of a shortened training is kept in a file, so that a resumed one has the same.
    """
    shortened = read_shortened(folder)
    options = dict(settings) if shortened is None else shortened.applied(settings)
    train_to_folder = partial(_train, folder, data, preset, start)
    if seconds is None or (shortened is not None and shortened.steps is not None):
        return train_to_folder(options, training, again=folder.exists())
    deadline = time.monotonic() + seconds
    again = folder.exists()
    while True:
        left = max(deadline - time.monotonic(), 1.0)
        try:
            return train_to_folder(options, BudgetGuard(left, training), again=again)
        except SlowSimilarity:
            shortened = ShortenedTraining(None, None, seconds, similarity=False)
        except OverBudget as over:
            similarity = shortened is None or shortened.similarity
            shortened = ShortenedTraining(over.steps, over.planned, seconds, similarity)
        report_shortened(training, shortened)
        with atomic_text_file(_limit_file(folder)) as file:
            file.write(json.dumps(asdict(shortened)) + "\n")
        options, again = shortened.applied(settings), True
        if shortened.steps is not None:
            shared: dict[str, Any] = {"preset": preset, "start": start, "out": folder, "progress": training}
            return train(data, overwrite=True, **shared, **options).seconds


def report_shortened(training: OnTrainingEvent | None, shortened: ShortenedTraining) -> None:
    """Say what a training gives up, before it begins again."""
    if training is None:
        return
    text = f"learning similarity would take more than half of {shortened.seconds:.0f} s, so it is left out"
    if shortened.steps is not None:
        planned = "" if shortened.planned is None else f" of {shortened.planned:,}"
        text = f"only {shortened.steps:,}{planned} steps fit into {shortened.seconds:.0f} s"
    training(TrainingEvent("note", 0, shortened.planned or 0, {"text": f"{text}; the training begins again"}))


def read_shortened(folder: Path) -> ShortenedTraining | None:
    """How the training of a folder was shortened to fit its budget; None if it was not."""
    file = _limit_file(folder)
    if not file.exists():
        return None
    values = json.loads(file.read_text(encoding="utf-8"))
    known: dict[str, Any] = {"steps": None, "planned": None, "similarity": True}  # files of older versions have fewer
    return ShortenedTraining(**{**known, **values})


def _limit_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.steps.json")


def with_steps(settings: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The settings with a number of steps instead of epochs."""
    return {**{name: value for name, value in settings.items() if name != "epochs"}, "steps": steps}


def _train(
    folder: Path,
    data: LabeledData,
    preset: str | None,
    start: str | None,
    settings: dict[str, Any],
    progress: OnTrainingEvent | None,
    *,
    again: bool,
) -> float:
    """Train, or resume what is in the folder; a state that cannot be resumed is trained again from the beginning."""
    shared: dict[str, Any] = {"preset": preset, "start": start, "out": folder, "progress": progress, **settings}
    if again:
        try:
            return train(data, resume=True, **shared).seconds
        except FolderError:
            return train(data, overwrite=True, **shared).seconds
    return train(data, **shared).seconds
