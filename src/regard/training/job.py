"""A training job, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from regard.data.batching.batches import BatchPlan, BatchSettings
from regard.model.network import Network
from regard.tasks.inference import RowSource, ScoreResult
from regard.tasks.joined_sentences import JoinedSentences
from regard.tasks.task import Task
from regard.training.engine.compilation import CompileCost, CompileMode
from regard.training.engine.distillation import Distillation
from regard.training.engine.distributed.world import World
from regard.training.engine.memory import MemoryPlan
from regard.training.engine.stepper import BatchShape
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.settings import Settings


class BatchSource(Protocol):
    """The rows of each epoch."""

    def epoch(self, number: int) -> RowSource: ...


@dataclass(frozen=True)
class TrainingJob:
    """A network, a task and the data to train on. Every setting is chosen."""

    network: Network
    task: Task
    source: BatchSource
    settings: Settings
    steps: int
    folder: Path
    batches: BatchSettings
    micro_batch_tokens: int | None = None  # tokens in memory at once; a whole step if None
    memory: MemoryPlan | None = None  # expected memory
    dtype: torch.dtype = torch.float32
    shape: BatchShape | None = None  # fixed sizes, for a recorded or compiled step
    compile: CompileMode = "no"
    compile_cost: CompileCost | None = None
    record: bool = False  # whether steps are recorded as CUDA graphs
    world: World = field(default_factory=World)
    score: Callable[[], ScoreResult] | None = None
    score_initial: bool = (
        False  # whether the initial weights are scored too, and kept if training does not improve them
    )
    prefer_last: bool = False  # whether the last weights are kept unless they score significantly worse than the best
    writes_files: bool = True  # whether metrics and the training state are written; not when training again on all rows
    average: float = 0.0  # fraction of the steps at the end whose weights are averaged
    saves_initial: bool = False  # whether the state has the weights that a repeated training begins from
    identity: Mapping[str, Any] = field(default_factory=dict)  # what a resumed run must share
    resume: bool = False
    progress: OnTrainingEvent | None = None
    distillation: Distillation | None = None  # a teacher

    @property
    def repeats(self) -> int:
        """How often the network is trained from its initial weights; once if there are no steps."""
        return (self.settings.repeats or 1) if self.steps else 1


@dataclass(frozen=True)
class FitResult:
    """How a training ended. The network has its best weights."""

    steps: int
    tokens: int
    seconds: float
    best: float | None
    best_step: int
    skipped: int
    stopped_early: bool
    first: float = 0.0  # seconds of the first step, with compilation
    tokens_per_second: float | None = None  # without the first step, scoring and saving
    compilation: str | None = None  # whether the step was compiled, and why; None where it cannot be
    repeats: int = 1  # trainings whose mean the network has; `seconds` and `tokens` are of all, the rest of the first
    earlier_seconds: float = 0.0  # of the steps before the training was resumed, which are part of `seconds`


def total_steps(source: BatchSource, batches: BatchSettings, settings: Settings) -> int:
    """The number of optimizer steps; epochs that differ in length are estimated from the first."""
    if settings.steps is not None:
        return settings.steps
    epochs = settings.epochs or 1.0
    if isinstance(source, JoinedSentences):
        parts = [min(epochs - number, 1.0) for number in range(math.ceil(epochs))]
        plans = (BatchPlan(source.epoch_lengths(number), batches, epoch=number) for number in range(len(parts)))
        return max(1, sum(math.ceil(part * plan.steps) for part, plan in zip(parts, plans, strict=True)))
    first = source.epoch(0)
    plan = BatchPlan(first.lengths, batches)
    if source.epoch(1) is not first:
        return max(1, round(epochs * plan.steps))
    whole = sum(plan.at(epoch).steps for epoch in range(int(epochs)))
    return max(1, whole + math.ceil((epochs - int(epochs)) * plan.at(int(epochs)).steps if epochs % 1 else 0))
