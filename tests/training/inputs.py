"""Inputs of a training, built without reading files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from regard.checkpoint.reading import preprocessing_of
from regard.data.records import ClassifyRecord, Record
from regard.tasks.classify import Classify
from regard.tasks.recipe import Recipe
from regard.training.defaults.recipes import DataSize
from regard.training.engine.distributed.world import World
from regard.training.initial_model import initial_model
from regard.training.load_data import LabeledData
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.run import RunContext, TrainingInputs
from regard.training.settings import Settings
from regard.training.validation import RecordValidation

RECORDS: list[Record] = [
    ClassifyRecord(f"a {word} day {number}", label)
    for number in range(8)
    for word, label in (("good", "yes"), ("bad", "no"))
]


def training_inputs(**settings: Any) -> TrainingInputs:
    """Twelve training rows and four validation rows for a tiny BERT, two steps by default."""
    data = LabeledData("classify", RECORDS[:12], RECORDS[12:], "sixteen rows", True, "0123")
    task = Classify.from_records(data.train)
    texts = [record.text for record in RECORDS if isinstance(record, ClassifyRecord)]
    model = initial_model(task, start=None, preset="tiny-bert", tokenizer=None, texts=texts, seed=0)
    preprocessing = preprocessing_of(model.checkpoint, model.tokenizer)
    examples = task.examples(data.train, preprocessing, labeled=True)
    return TrainingInputs(
        task=task,
        model=model,
        source=examples,
        size=DataSize.of(examples.lengths),
        data=data,
        rows=len(data.train),
        settings=Settings(**{"steps": 2, "lr": 1e-3, "batch_size": 4, "batch_tokens": 256, **settings}),
        recipe=Recipe(),
        identity={"data": data.fingerprint, "start": "tiny-bert", "task": task.name, "tokenizer": ["word list"]},
        describe=lambda job: [f"{job.steps} steps"],
        validation=RecordValidation(data.dev, preprocessing),
    )


def run_context(folder: Path, *, progress: OnTrainingEvent | None = None, resume: bool = False) -> RunContext:
    folder.mkdir(exist_ok=True)
    return RunContext(folder, torch.device("cpu"), World(), resume=resume, progress=progress)
