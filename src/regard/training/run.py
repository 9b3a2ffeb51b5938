"""A training run as a value: where it writes, what it trains on, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from regard.metrics.calibration import Calibration
from regard.tasks.inference import ScoreResult
from regard.tasks.recipe import Recipe
from regard.tasks.task import Answer, RowOutputs, Task
from regard.training.defaults.recipes import DataSize
from regard.training.engine.distillation import Distillation
from regard.training.engine.distributed.world import World, join_process_group
from regard.training.initial_model import InitialModel
from regard.training.job import BatchSource, FitResult, TrainingJob
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent
from regard.training.settings import Settings
from regard.training.validation import ValidationRows


class DataSummary(Protocol):
    """What run.json says of the data."""

    @property
    def train(self) -> Sized: ...
    @property
    def dev(self) -> Sized: ...
    @property
    def reason(self) -> str: ...
    @property
    def split_off(self) -> bool: ...
    @property
    def fingerprint(self) -> str: ...


class Validation(Protocol):
    """Validation data that a network is scored on."""

    def check(self, job: TrainingJob) -> None:
        """Raise an error if the data cannot be scored, before any time is spent on training."""

    def samples_all(self, task: Task) -> bool:
        """Whether scores of a sample are those of all rows."""

    def score(self, job: TrainingJob, *, sampled: bool = False, rows: ValidationRows | None = None) -> ScoreResult:
        """The scores of the network as it is; on a sample of the rows if `sampled`, where all take long.

        rows: receives the records, where there are any, with what the network computed for them.
        """


@dataclass(frozen=True)
class RunContext:
    """Where a run writes, on which device it computes, and who is informed of its progress."""

    folder: Path
    device: torch.device
    world: World
    resume: bool = False
    progress: OnTrainingEvent | None = None
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def join(cls, folder: Path, device: torch.device, **more: Any) -> RunContext:
        """The context of this process, one of those that torchrun started or the only one."""
        world, own_device = join_process_group(device)
        return cls(folder, own_device, world, **more)

    def report(self, event: TrainingEvent) -> None:
        """Inform the caller, from the main process only."""
        if self.progress is not None and self.world.is_main_process:
            self.progress(event)


@dataclass(frozen=True)
class TrainingInputs:
    """What is trained, and on what: all that distinguishes one kind of training from another.

    settings: as the user gave them; what is left open is chosen from `recipe` and the `size` of the data.
    identity: what a resumed run must share with the stopped one, besides its settings.
    describe: lines about the run for the user, before its first step.
    initialize: sets initial weights that depend on the data, before the first step; these are scored too.
    fitted: whether `initialize` sets the final weights, so that there are no training steps.
    refit: the same with all rows, validation rows too, and another network: what is written in the end.
    head_only_refit: whether that network has the vectors of the first, and only its head is fitted again.
    saved_settings: those that a resumed run began with, in place of what would be chosen now.
    average: fraction of the steps at the end whose weights are averaged; 0 disables averaging.
    details: further fields of run.json, from the final scores.
    """

    task: Task
    model: InitialModel
    source: BatchSource
    size: DataSize
    data: DataSummary
    rows: int
    settings: Settings
    recipe: Recipe
    identity: Mapping[str, Any]
    describe: Callable[[TrainingJob], list[str]]
    validation: Validation | None = None
    initialize: Callable[[TrainingJob], None] | None = None
    refit: Callable[[], TrainingInputs] | None = None
    head_only_refit: bool = False
    saved_settings: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    average: float = 0.0
    fitted: bool = False
    details: Callable[[ScoreResult | None], Mapping[str, Any]] = lambda _: {}
    distillation: Distillation | None = None


@dataclass(frozen=True)
class TrainedRun:
    """A run that came to its end; `task` has what was tuned on the validation rows, such as a threshold.

    rows: validation rows with what the network computed for them. answers: of `task` for these rows, if they are known.
    uncalibrated: calibration before the tuning.
    """

    context: RunContext
    inputs: TrainingInputs
    job: TrainingJob
    fitted: FitResult
    task: Task
    scores: ScoreResult | None
    details: Mapping[str, Any]
    rows: Sequence[RowOutputs] = ()
    answers: Sequence[Answer] | None = None
    uncalibrated: Calibration | None = None

    @property
    def seconds(self) -> float:
        """The duration up to now; of a resumed run, with the steps before it was stopped."""
        return round(time.monotonic() - self.context.started + self.fitted.earlier_seconds, 3)
