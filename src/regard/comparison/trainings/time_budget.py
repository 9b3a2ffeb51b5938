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
from regard.data.check.page import format_duration
from regard.errors import FolderError, InputError, setting
from regard.training.head_init import contrastive, similarity
from regard.training.load_data import LabeledData
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.train import train

UNITS = {"s": 1, "m": 60, "h": 3600, "": 1}
TOLERANCE = 1.1  # of the budget, before a training is shortened
SAFETY = 0.9  # part of the budget that a shortened training is planned for
START = 0.5  # part of the budget that may be spent before the first step, on similarity or contrastive training
LEAST = 20  # steps that are trained even if they take longer: with fewer, nothing is learned
WITHOUT = {similarity.LEARNING: "random", contrastive.LEARNING: "probe"}  # the head_init that leaves it out


def parse_duration(value: str | float | None) -> float | None:
    """A time budget in seconds: 90, "90s", "30m" or "2h"."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value))
    if match is None or float(match[1]) == 0:
        raise InputError(f"{setting('time')} is {value!r}, expected a duration such as 90s, 30m or 2h.")
    return float(match[1]) * UNITS[match[2]]


class OverBudget(Exception):
    """A training that would take longer than its budget: `expected` seconds for all `planned` steps.

    `fitting` of them fit into the budget, and `steps` are to be trained: 20 at least, if there are as many.
    """

    def __init__(self, fitting: int, planned: int, expected: float) -> None:
        super().__init__(fitting)
        self.fitting, self.planned, self.expected = fitting, planned, expected
        self.steps = max(fitting, min(LEAST, planned))


class SlowStart(Exception):
    """A training that would spend most of its budget before its first step; on what: a key of `WITHOUT`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class ShortenedTraining:
    """What a training gives up to fit into its time budget."""

    steps: int | None  # how many are trained; None for all
    planned: int | None  # None in the files of older comparisons
    seconds: float  # the budget
    without: str | None = None  # what is left out before the first step, a key of `WITHOUT`
    fitting: int | None = None  # steps that fit; `steps` are more if these are too few to learn from
    expected: float | None = None  # seconds of all steps

    def applied(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of the shortened training."""
        changed = dict(settings) if self.steps is None else with_steps(settings, self.steps)
        return changed if self.without is None else {**changed, "head_init": WITHOUT[self.without]}


class BudgetGuard:
    """Receives the events of a training, and ends it early on if it would take too long.

    If it is repeated, or another network is trained on all rows afterwards, that time counts too; these are not ended.
    A training that ends early begins again with a number of steps, and is then repeated only if `settings` say so.
    """

    def __init__(
        self, seconds: float, forward: OnTrainingEvent | None, settings: Mapping[str, Any] | None = None
    ) -> None:
        self.seconds, self.forward = seconds, forward
        self.first: tuple[str, int, float] | None = None  # kind, step and time of the first event of its kind
        self.trainings, self.is_second = 1, False
        self.user_repeats = (settings or {}).get("repeats")
        self.default_repeats = 1  # trainings that are repeated by default, and not if steps are given
        self.started = time.monotonic()

    def __call__(self, event: TrainingEvent) -> None:
        if self.forward is not None:
            self.forward(event)
        if event.kind == "begin":
            self.trainings = event.values.get("trainings", 1)
            self.default_repeats = event.values.get("repeats", 1) if self.user_repeats is None else 1
        again = event.values.get("refit") or event.values.get("repeat")
        self.is_second = self.is_second or (event.kind == "note" and bool(again))
        what = event.values.get("what") if event.kind == "fit" else None
        if event.kind != "log" and what not in WITHOUT:
            return
        now = time.monotonic()
        if self.first is None or self.first[0] != event.kind:
            self.first = event.kind, event.step, now
        elif not self.is_second:
            self._check(event, what, now)

    def _check(self, event: TrainingEvent, what: str | None, now: float) -> None:
        """End the training if, at the speed since its first event, all its steps would take too long."""
        assert self.first is not None
        _, step, at = self.first
        per_step = (now - at) / max(event.step - step, 1)
        if what != similarity.LEARNING:  # which is learned once
            per_step *= self.trainings
        expected = (at - self.started) + per_step * (event.steps - step)
        if what is not None and expected > START * self.seconds:
            raise SlowStart(what)
        if what is None and expected > TOLERANCE * self.seconds:
            fitting = int((SAFETY * self.seconds - (at - self.started)) * self.default_repeats / per_step) + step
            raise OverBudget(max(1, fitting), event.steps * self.default_repeats, expected)


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
        return train_to_folder(options, training, resume=folder.exists())
    deadline = time.monotonic() + seconds
    began = False
    while True:
        left = max(deadline - time.monotonic(), 1.0)
        guard = BudgetGuard(left, training, options)
        try:
            return train_to_folder(options, guard, resume=folder.exists() and not began, overwrite=began)
        except SlowStart as slow:
            shortened = ShortenedTraining(None, None, seconds, without=slow.what)
        except OverBudget as over:
            shortened = shortened_by(over, seconds, without=None if shortened is None else shortened.without)
        report_shortened(training, shortened)
        with atomic_text_file(_limit_file(folder)) as file:
            file.write(json.dumps(asdict(shortened)) + "\n")
        options, began = shortened.applied(settings), True
        if shortened.steps is not None:
            shared: dict[str, Any] = {"preset": preset, "start": start, "out": folder, "progress": training}
            return train(data, overwrite=True, **shared, **options).seconds


def shortened_by(over: OverBudget, seconds: float, *, without: str | None = None) -> ShortenedTraining:
    """The training with fewer steps."""
    return ShortenedTraining(over.steps, over.planned, seconds, without, over.fitting, over.expected)


def report_shortened(training: OnTrainingEvent | None, shortened: ShortenedTraining) -> None:
    """Say what a training gives up, before it begins again."""
    if training is None:
        return
    limit = f"the {shortened.seconds:.0f} s for this training"
    text = f"{shortened.without} would take more than half of {limit}, so it is left out"
    if shortened.steps is not None:
        planned = "" if shortened.planned is None else f" of {shortened.planned:,}"
        fitting = shortened.steps if shortened.fitting is None else shortened.fitting
        text = f"only {fitting:,}{planned} steps fit into {limit}"
        if fitting < shortened.steps:
            text += f", too few to learn from, so {shortened.steps:,} are trained, which takes longer"
        if shortened.expected is not None:
            text += f" (all take about {format_duration(shortened.expected)})"
    training(TrainingEvent("note", 0, shortened.planned or 0, {"text": f"{text}; the training begins again"}))


def read_shortened(folder: Path) -> ShortenedTraining | None:
    """How the training of a folder was shortened to fit its budget; None if it was not."""
    file = _limit_file(folder)
    if not file.exists():
        return None
    values = json.loads(file.read_text(encoding="utf-8"))
    if values.pop("similarity", True) is False:  # a file of an older version
        values["without"] = similarity.LEARNING
    return ShortenedTraining(**{"steps": None, "planned": None, **values})


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
    resume: bool,
    overwrite: bool = False,
) -> float:
    """Train, or resume what is in the folder; a state that cannot be resumed is trained again from the beginning."""
    shared: dict[str, Any] = {"preset": preset, "start": start, "out": folder, "progress": progress, **settings}
    if resume:
        try:
            return train(data, resume=True, **shared).seconds
        except FolderError:
            overwrite = True
    return train(data, overwrite=overwrite, **shared).seconds
