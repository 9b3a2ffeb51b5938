"""Weights that depend on the data, set before the first training step."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.baselines import Baseline
from regard.baselines.fit import fit_baseline
from regard.baselines.ngram import Report
from regard.data.batching.examples import Examples
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import PairRecord, Record
from regard.model.network import Network
from regard.tasks.classify import Classify
from regard.tasks.task import Task
from regard.training.defaults.recipes import (
    ContrastiveTraining,
    SimilarityTraining,
    contrastive_training,
    similarity_training,
)
from regard.training.engine.loop import Stopped
from regard.training.head_init.contrastive import train_contrastive
from regard.training.head_init.linear_probe import start_from_probe
from regard.training.head_init.sentence_encoder import SentenceEncoder
from regard.training.head_init.similarity import train_similarity
from regard.training.initial_model import InitialModel
from regard.training.job import TrainingJob
from regard.training.output.metrics_log import TrainingEvent
from regard.training.resume.state import put_weights, weights_of
from regard.training.run import RunContext, TrainingInputs
from regard.training.settings import Settings


def weight_initializer(
    task: Task,
    records: Sequence[Record],
    examples: Examples,
    preprocessing: Preprocessing,
    model: InitialModel,
    baseline: Baseline | None,
    settings: Settings,
    seed: int,
) -> Callable[[TrainingJob], None] | None:
    """A function that sets weights of the network of a job; None if all weights are set already.

    It fits a baseline, or a linear probe as the head, or lets the network learn similarity before pairs are classified.
    settings: without the values of what depends on the size of the data, unless the user gave them.
    """

    def learn_similarity(job: TrainingJob) -> None:
        pairs = [record for record in records if isinstance(record, PairRecord)]
        encoder = SentenceEncoder(
            job.network, preprocessing, model.checkpoint.pooling or "mean", model.pooling == "mean", job.dtype
        )
        training = planned_similarity(model, len(pairs), next(job.network.parameters()).device)
        assert training is not None
        train_similarity(job, pairs, encoder, training, seed=seed, report=progress_reporter(job))

    if model.head_init == "similarity":
        return learn_similarity
    if model.probe:
        assert isinstance(task, Classify)
        return ProbeInitializer(task, examples, len(records), model, settings, seed, all_rows=baseline is not None)
    if baseline is not None and baseline.fitted:
        return lambda job: fit_baseline(job.network, task, examples, seed=seed, report=progress_reporter(job))
    return None


def is_fitted(model: InitialModel, baseline: Baseline | None, user_settings: Settings) -> bool:
    """Whether the network is ready before the first training step.

    After contrastive training, more training makes it worse (benchmarks/defaults.md): there is none unless asked for.
    """
    if baseline is not None:
        return baseline.fitted
    return model.head_init == "contrastive" and user_settings.epochs is None and user_settings.steps is None


@dataclass(frozen=True)
class ProbeInitializer:
    """Fits a linear probe as the head of the network of a job, with few labels after contrastive training.

    all_rows: the probe reads all rows, not only some of many, and the strength of its regularization is chosen.
    trained: a network whose contrastive training is done; its weights are used, and only the probe is fitted.
    """

    task: Classify
    examples: Examples
    rows: int
    model: InitialModel
    settings: Settings
    seed: int
    all_rows: bool
    trained: Network | None = None

    def __call__(self, job: TrainingJob) -> None:
        report = progress_reporter(job)
        device = next(job.network.parameters()).device
        arguments: dict[str, Any] = {"seed": self.seed, "dtype": job.dtype, "report": report}
        contrastive = planned_contrastive(self.model, self.rows, self.settings, device)
        if self.trained is not None:
            put_weights(job.network, weights_of(self.trained))
        elif contrastive is not None:
            with _stopped_by_keyboard():
                train_contrastive(job.network, self.task, self.examples, contrastive, **arguments)
        if self.all_rows:
            arguments |= {"max_rows": len(self.examples), "strength": None}
        start_from_probe(job.network, self.task, self.examples, **arguments)


def computed_once(initialize: Callable[[TrainingJob], None]) -> Callable[[TrainingJob], None]:
    """A function that computes the weights of the network of the first job, and copies them to those of later jobs."""
    weights: dict[str, Tensor] = {}

    def copied(job: TrainingJob) -> None:
        if weights:
            put_weights(job.network, weights)
            return
        initialize(job)
        weights.update({name: weight.clone() for name, weight in weights_of(job.network).items()})

    return copied


@contextmanager
def _stopped_by_keyboard() -> Iterator[None]:
    """Ctrl-C in this block says that nothing is saved."""
    try:
        yield
    except KeyboardInterrupt:
        words = "stopped during contrastive training; nothing is saved yet."
        raise Stopped(words, signal=signal.SIGINT, advice="Start it again.") from None


def planned_contrastive(
    model: InitialModel, rows: int, settings: Settings, device: torch.device
) -> ContrastiveTraining | None:
    """How vectors are made similar before a linear probe is fitted; None if they are not, as with a frozen encoder.

    A learning rate and a batch size of the user are for these steps, unless steps on the labels follow.
    """
    if model.head_init != "contrastive" or "encoder" in (settings.freeze or ()):
        return None
    training = contrastive_training(rows, len(model.checkpoint.labels or ()), gpu=device.type == "cuda")
    if settings.epochs is not None or settings.steps is not None:
        return training
    return replace(training, lr=settings.lr or training.lr, texts=settings.batch_size or training.texts)


def refits_head_only(inputs: TrainingInputs, device: torch.device) -> bool:
    """Whether a second network, for all rows, has the vectors of the first, which took no steps after these."""
    contrastive = planned_contrastive(inputs.model, inputs.rows, inputs.settings, device)
    return inputs.fitted and contrastive is not None and contrastive.once and not inputs.settings.lora.rank


def planned_similarity(model: InitialModel, rows: int, device: torch.device) -> SimilarityTraining | None:
    """How similarity is learned before the first step; None if it is not."""
    if model.head_init != "similarity":
        return None
    return similarity_training(model.checkpoint.config, rows, gpu=device.type == "cuda")


def progress_reporter(run: RunContext | TrainingJob) -> Report:
    """Reports what is done before the first training step."""

    def report(what: str, done: int, total: int) -> None:
        if run.progress is not None and run.world.is_main_process:
            run.progress(TrainingEvent("fit", done, total, {"what": what}))

    return report
