"""The network of a baseline before it is fitted, and the settings that baselines take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import torch

from regard.baselines import Baseline, check_task
from regard.baselines.ngram import Report, build_ngram
from regard.baselines.static import build_static
from regard.baselines.tagger import build_tagger
from regard.data.records import Record
from regard.errors import InputError, setting
from regard.tasks.classify import Classify
from regard.tasks.tag import Tag
from regard.tasks.task import Task
from regard.training.initial_model import InitialModel, for_task
from regard.training.settings import Settings

BASELINE_SETTINGS = ("seed", "device", "dev_fraction", "refit", "class_balance", "pooling", "tensorboard")
REASONS = {  # why a baseline that is fitted at once does not take a setting, where it is not the lack of steps
    "context": "reads each sentence alone",
    "explainable": "masks no words: it has no network, and its weights show what counts for each n-gram or number",
    "dropout": "has no network with dropout",
    "label_smoothing": "is a linear model, which is fitted to the labels as they are",
}


def baseline_model(
    name: str, task: Task, records: Sequence[Record], *, start: str | Path | None, seed: int, report: Report
) -> InitialModel:
    """The network and the tokenizer of a baseline, before it is fitted or trained."""
    torch.manual_seed(seed)
    if name == "static":
        checkpoint, tokenizer = build_static(task, records, start=start or "minilm", report=report)
    elif isinstance(task, Tag):
        checkpoint, tokenizer = build_tagger(task, records)
    else:
        assert isinstance(task, Classify)
        checkpoint, tokenizer = build_ngram(task, records, report)
    return InitialModel(for_task(checkpoint, task, None), tokenizer, pretrained=name == "static")


def check_baseline(
    chosen: Baseline,
    task: str,
    settings: Settings,
    *,
    start: str | Path | None,
    tokenizer: str | Path | None,
) -> None:
    """Raise InputError for a task that a baseline cannot do, and for what would have no effect on it."""
    check_task(chosen.name, task)
    if start is not None and not chosen.takes_start:
        raise InputError(
            f"{setting('start', str(start))} was given, but the baseline {chosen.name} learns from the training data "
            "alone. Leave it out."
        )
    if tokenizer is not None:
        raise InputError(f"{setting('tokenizer')} was given, but the baseline {chosen.name} has its own. Leave it out.")
    if not chosen.fitted:
        return
    plain = Settings()
    names = [field.name for field in fields(Settings) if getattr(settings, field.name) != getattr(plain, field.name)]
    for name in names:
        if name not in BASELINE_SETTINGS:
            reason = REASONS.get(name, "is fitted at once, without training steps")
            raise InputError(f"{setting(name)} was given, but the baseline {chosen.name} {reason}. Leave it out.")
