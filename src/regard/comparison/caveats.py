"""What makes the scores of a comparison less reliable: known before it starts (an error), or said in a note."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from regard.comparison.trainings.compared_data import SPLIT_OFF, ComparedData
from regard.comparison.trainings.jobs import Job, JobFolder
from regard.comparison.trainings.specs import LOADED, ModelSpec
from regard.comparison.trainings.time_budget import read_shortened
from regard.comparison.words import number
from regard.data.records import ClassifyRecord, PairRecord, Record
from regard.errors import InputError, setting
from regard.metrics.paired.rows import HasRows, row_table
from regard.predict.model_task import read_training_run
from regard.training.load_data import default_split_hashes


def check_metric(data: ComparedData, metric: str | None) -> None:
    """Raise InputError for a score that the task does not have, before anything is trained."""
    meter = data.task.meter()
    if metric is None or not isinstance(meter, HasRows):
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # means of no rows
        meter.keep_rows()
        row_table(meter).score(metric)


def check_unseen(data: ComparedData, specs: Sequence[ModelSpec]) -> None:
    """Raise InputError for a trained model that was trained on the test rows too."""
    loaded = [spec for spec in specs if spec.kind == LOADED]
    if not loaded:
        return
    split_off = data.test_source == SPLIT_OFF
    rows = [*data.labeled.train, *data.labeled.dev, *data.test] if split_off else data.test
    hashes = default_split_hashes(sorted(rows, key=_position))
    for spec in loaded:
        folder = Path(spec.start or "").expanduser()
        run = read_training_run(folder) if folder.is_dir() else None
        if run is not None and isinstance(run.read_as, dict) and run.read_as.get("hash") in hashes:
            raise InputError(
                f"{spec.name} was trained on the rows that it would be tested on, so its score would be meaningless. "
                f"Give rows that it has not seen with {setting('test')}, or name what it was trained from, such as "
                "ngram or minilm, to train it here without the test rows."
            )


def _position(record: Record) -> tuple[str, int, int]:
    return record.place.file, record.place.line or 0, record.place.row or 0


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
