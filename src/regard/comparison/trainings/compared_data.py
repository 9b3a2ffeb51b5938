"""The rows of a comparison: the same training, validation and test rows for every model."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.data.readers import read, split_names
from regard.data.records import ClassifyRecord, PairRecord, Record
from regard.data.splits import group_records, split_records
from regard.errors import InputError, pluralize, setting
from regard.tasks import task_class
from regard.tasks.classify import Classify
from regard.tasks.task import Task
from regard.training.load_data import LabeledData, Where, default_dev_fraction, fingerprint, load_data

TEST_FRACTION = 0.2
SPLIT_OFF, FOLDER_SPLIT, OWN_FILE = "split off", "test split of the data", "test data"
RULE_LIMIT = 1500


@dataclass(frozen=True)
class ComparedData:
    """`labeled` has the training and validation rows; `test` the rows that models are compared on."""

    labeled: LabeledData
    test: list[Record]
    test_source: str
    task: Task  # with the labels of all rows; it scores the answers of all models
    notes: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, str]:
        """The same for the same rows."""
        return {"task": self.labeled.task, "data": self.labeled.fingerprint, "test": fingerprint(self.test, [])}

    def part(self, fraction: float) -> LabeledData:
        """The data with a fraction of the training rows; smaller parts are inside of larger ones."""
        if fraction >= 1:
            return self.labeled
        train = self.labeled.train
        order = list(range(len(train)))
        random.Random(0).shuffle(order)
        count = max(1, round(fraction * len(train)))
        chosen = _with_every_label(train, order, count)
        rows = [train[row] for row in sorted(chosen)]
        return replace(self.labeled, train=rows, fingerprint=fingerprint(rows, self.labeled.dev))


def _with_every_label(train: list[Record], order: list[int], count: int) -> list[int]:
    """The first rows of this order, with one row of every label in front, so that a small part has all of them."""
    first: dict[str | float, int] = {}
    for row in order:
        stratum = train[row].stratum
        if isinstance(stratum, str):
            first.setdefault(stratum, row)
    front = list(first.values()) if len(first) <= count else []
    chosen = set(front)
    return [*front, *(row for row in order if row not in chosen)][:count]


def load_compared_data(
    data: Where,
    *,
    test: Where | None = None,
    dev: Where | None = None,
    task: str | None = None,
    test_fraction: float = TEST_FRACTION,
    seed: int = 0,
    **reading: Any,
) -> ComparedData:
    """Read the data once, and split off test rows (unless there are some) and validation rows."""
    if not 0 < test_fraction < 1:
        raise InputError(f"{setting('test_fraction')} is {test_fraction:g}, expected a fraction between 0 and 1.")
    whole = load_data(data, dev=dev, task=task, dev_fraction=0, seed=seed, **reading)
    train, dev_rows = whole.train, whole.dev
    if test is not None or "test" in split_names(data):
        test_rows = _read_test(data if test is None else test, whole, reading)
        source = OWN_FILE if test is not None else FOLDER_SPLIT
    else:
        parts = _split(train, {"train": 1 - test_fraction, "test": test_fraction}, seed)
        train, test_rows, source = parts["train"], parts["test"], SPLIT_OFF
    split_off = not dev_rows
    if split_off:
        fraction = default_dev_fraction(len(train))
        parts = _split(train, {"train": 1 - fraction, "dev": fraction}, seed)
        train, dev_rows = parts["train"], parts["dev"]
    labeled = replace(whole, train=train, dev=dev_rows, split_off=split_off, fingerprint=fingerprint(train, dev_rows))
    return ComparedData(labeled, test_rows, source, _scoring_task(labeled, test_rows), _notes(labeled, test_rows))


def _split(records: list[Record], parts: Mapping[str, float], seed: int) -> dict[str, list[Record]]:
    try:
        rows = split_records(records, parts, seed=seed, rare_labels="train")
    except InputError as error:
        groups = len(group_records(records))
        what = f"{pluralize(len(records), 'row')} in {pluralize(groups, 'group')}" if groups < len(records) else None
        raise InputError(
            f"{what or pluralize(len(records), 'row')} cannot be divided into rows to train, validate and test on"
            f"{': rows of one group stay on one side' if what else ''}. Give more rows, or those to test on with "
            f"{setting('test')} and those to validate on with {setting('dev')}."
        ) from error
    return {name: [records[row] for row in rows[name]] for name in parts}


def _read_test(test: Where, whole: LabeledData, reading: Mapping[str, Any]) -> list[Record]:
    options = {name: value for name, value in reading.items() if name != "skip_bad"}
    options["labels"] = options.get("labels") or whole.read_options.get("labels")
    part = next((name for name in ("test", "valid") if name in split_names(test)), None)
    return list(read(test, split=part, task=whole.task, **options))


def _scoring_task(labeled: LabeledData, test: list[Record]) -> Task:
    """The task with the labels of all rows; raises InputError if the training rows have one label only."""
    kind = task_class(labeled.task)
    task = kind.from_records([*labeled.train, *labeled.dev])
    return kind.from_records([*labeled.train, *labeled.dev, *test]) if isinstance(task, Classify) else task


def _notes(labeled: LabeledData, test: list[Record]) -> tuple[str, ...]:
    """What makes the scores less reliable, in words."""
    notes = []
    known = {record.input_texts for record in (*labeled.train, *labeled.dev)}
    both = sum(record.input_texts in known for record in test)
    if both > len(test) / 2:
        raise InputError(
            f"{both} of {len(test)} test rows are also in the training data, so their score would be meaningless. "
            f"Give other rows with {setting('test')}, or leave it out."
        )
    if both:
        notes.append(
            f"{pluralize(both, 'test row')} of {len(test):,} are also in the training data; scores are too high"
        )
    unknown = check_test_labels([*labeled.train, *labeled.dev], test)
    if unknown is not None:
        notes.append(unknown)
    return tuple(notes)


def check_test_labels(train: Iterable[Record], test: Sequence[Record]) -> str | None:
    """A note about labels that only test rows have; raises InputError if no test row has a label to learn."""
    trained = {record.stratum for record in train}
    labeled = [
        record for record in test if isinstance(record, ClassifyRecord | PairRecord) and isinstance(record.label, str)
    ]
    unknown = sorted({str(record.label) for record in labeled if record.stratum not in trained})
    names = ", ".join(unknown[:5])
    if labeled and all(record.stratum not in trained for record in labeled):
        known = ", ".join(sorted(map(str, trained))[:5])
        raise InputError(
            f"no label of the test rows ({names}) is in the training data ({known}), so every answer would be wrong. "
            "Give test rows with the same labels."
        )
    if not unknown:
        return None
    return f"{pluralize(len(unknown), 'label')} of the test rows not in the training data: {names}"


def words_per_sample(records: list[Record]) -> float:
    """The median number of words of a row."""
    counts = sorted(sum(len(text.split()) for _, text in record.texts) for record in records)
    return float(counts[len(counts) // 2]) if counts else 0.0
