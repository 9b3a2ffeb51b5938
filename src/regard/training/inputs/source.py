"""The sequences of each epoch of a training on labeled data."""

from __future__ import annotations

from regard.data.batching.examples import Examples
from regard.data.batching.masked_words import MaskedWordsSource
from regard.data.batching.preprocessing import Preprocessing
from regard.tasks.task import Task
from regard.training.engine.distillation import Distillation
from regard.training.initial_model import InitialModel
from regard.training.job import BatchSource
from regard.training.load_data import LabeledData
from regard.training.settings import Settings


def joins_records(task: Task, model: InitialModel, settings: Settings, distillation: Distillation | None) -> bool:
    """Whether sentences of a document share sequences: not where a setting or a teacher counts sentences one by one."""
    one_by_one = settings.batch_size or settings.explainable or distillation is not None
    return task.joins_records and model.pretrained and not one_by_one


def epoch_source(
    task: Task,
    data: LabeledData,
    preprocessing: Preprocessing,
    settings: Settings,
    distillation: Distillation | None = None,
    *,
    joined: bool = False,
) -> tuple[BatchSource, Examples]:
    """The sequences of each epoch, and those that their lengths are planned with. joined: of several records each."""
    if joined:
        sentences = task.joined_source(data.train, preprocessing, seed=settings.seed)
        return sentences, sentences.epoch(0)
    if distillation is not None:
        taught = distillation.soft_targets(task, task.examples(data.train, preprocessing, labeled=True), data.train)
        return taught, taught
    examples = task.examples(data.train, preprocessing, labeled=True)
    if settings.explainable:
        return MaskedWordsSource.of(examples, preprocessing.tokenizer, seed=settings.seed), examples
    return examples, examples
