"""What makes the scores of a comparison less reliable: known before it starts (an error), or said in a note."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from regard.comparison.trainings.compared_data import ComparedData
from regard.comparison.trainings.jobs import Job, JobFolder
from regard.comparison.trainings.specs import LOADED, ModelSpec
from regard.comparison.trainings.time_budget import read_shortened
from regard.comparison.words import number
from regard.data.records import ClassifyRecord, PairRecord, Record
from regard.errors import InputError, setting
from regard.metrics.paired.rows import HasRows, row_table
from regard.predict.model_task import seen_rows


def check_metric(data: ComparedData, metric: str | None) -> None:
    """Raise InputError for a score that the task does not have, before anything is trained."""
    meter = data.task.meter()
    if metric is None or not isinstance(meter, HasRows):
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # means of no rows
        meter.keep_rows()
        row_table(meter).score(metric)


def seen_notes(data: ComparedData, specs: Sequence[ModelSpec]) -> list[str]:
    """Notes on trained models that have seen some of the test rows in training; an InputError if most of them."""
    notes = []
    for spec in specs:
        folder = Path(spec.start or "").expanduser()
        seen = seen_rows(folder, data.test) if spec.kind == LOADED and folder.is_dir() else None
        if seen is None or seen.words is None:
            continue
        if seen.fraction <= 0.5:
            notes.append(
                f"{seen.words} of the test are also in the training data of {spec.name}; its score is too high"
            )
            continue
        raise InputError(
            f"{spec.name} was trained on the rows that it would be tested on ({seen.words}), so its score would be "
            f"meaningless. Give rows that it has not seen with {setting('test')}, or name what it was trained from, "
            "such as ngram or minilm, to train it here without the test rows."
        )
    return notes


def shortened_notes(root: Path, jobs: Iterable[Job]) -> Iterator[str]:
    """One note for each model whose training had to be shortened to fit into the time."""
    for job in jobs:
        shortened = read_shortened(JobFolder(root, job).model)
        if shortened is None or shortened.steps is None or job.fraction < 1:
            continue
        planned = "" if shortened.planned is None else f" of {shortened.planned:,}"
        yield (
            f"{job.spec.name}{f', seed {job.seed}' if job.seed else ''}: only {shortened.steps:,}{planned} training "
            f"steps fit into its {shortened.seconds:.3g} s, so its score may be far below what it can reach; allow "
            "more time"
        )


def majority_note(records: Sequence[Record], metric: str) -> str | None:
    """The score of a model that always answers the most frequent label; None where labels are not counted so."""
    labels = [record.label for record in records if isinstance(record, ClassifyRecord | PairRecord)]
    if metric != "accuracy" or len(labels) < len(records) or not all(isinstance(label, str) for label in labels):
        return None
    label, count = Counter(labels).most_common(1)[0]
    return f'always answering "{label}" would be right in {number(metric, count / len(labels))} % of the test rows'
