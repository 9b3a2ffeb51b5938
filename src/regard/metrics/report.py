"""Scores of each class and the confusion matrix, from the counts that a meter keeps.

Precision, recall, F1 and support are those of scikit-learn's `classification_report` (for entities: seqeval's, strict
IOB2); the matrices are those of `confusion_matrix` and `multilabel_confusion_matrix`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from regard.metrics.scores import Average, ConfusionCounts, Integers, LabelCounts

FULL_MATRIX = 200  # classes up to which JSON holds every cell
NO_ENTITY = "O"  # the row of entities that are not in the data, and the column of those that were missed


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Precision, recall and F1 of one class, and in how many rows it is the true one (support)."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """How often the class `true` was predicted as `predicted`."""

    true: str
    predicted: str
    count: int


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often each true class (row) was predicted as each class (column). Cells of 0 take no memory."""

    labels: tuple[str, ...]
    cells: Mapping[tuple[int, int], int]  # (true, predicted) -> count

    @classmethod
    def of_counts(cls, confusion: ConfusionCounts, labels: Sequence[str]) -> ConfusionMatrix:
        columns = [part.tolist() for part in confusion.cells()]
        cells = {(true, predicted): count for true, predicted, count in zip(*columns, strict=True)}
        return cls(tuple(labels), cells)

    @classmethod
    def of_names(cls, counts: Mapping[tuple[str, str], int], labels: Sequence[str]) -> ConfusionMatrix:
        number = {label: index for index, label in enumerate(labels)}
        return cls(tuple(labels), {(number[true], number[ours]): count for (true, ours), count in counts.items()})

    def matrix(self) -> Integers:
        """The whole matrix (true class, predicted class)."""
        table = np.zeros((len(self.labels), len(self.labels)), np.int64)
        for (true, predicted), count in self.cells.items():
            table[true, predicted] = count
        return table

    def most_confused(self, limit: int = 10) -> list[ConfusedPair]:
        """The most frequently confused pairs of classes, the most frequent first."""
        wrong = [(count, pair) for pair, count in self.cells.items() if pair[0] != pair[1] and count]
        wrong.sort(key=lambda one: (-one[0], one[1]))
        return [ConfusedPair(self.labels[true], self.labels[ours], count) for count, (true, ours) in wrong[:limit]]

    def json(self) -> dict[str, Any]:
        """Labels, the matrix (null above 200 labels) and the 20 most confused pairs."""
        matrix = self.matrix().tolist() if len(self.labels) <= FULL_MATRIX else None
        pairs = [asdict(pair) for pair in self.most_confused(20)]
        return {"labels": list(self.labels), "matrix": matrix, "most_confused": pairs}


@dataclass(frozen=True)
class MultilabelConfusion:
    """For each label a table of two by two: ((right without it, wrongly given), (missed, rightly given))."""

    labels: tuple[str, ...]
    tables: tuple[tuple[tuple[int, int], tuple[int, int]], ...]

    @classmethod
    def of_counts(cls, counts: LabelCounts, labels: Sequence[str], rows: int) -> MultilabelConfusion:
        tables = []
        for hits, predicted, gold in zip(counts.hits, counts.predicted, counts.gold, strict=True):
            false, missed = int(predicted - hits), int(gold - hits)
            tables.append(((rows - int(hits) - false - missed, false), (missed, int(hits))))
        return cls(tuple(labels), tuple(tables))

    def json(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "per_label": [[list(row) for row in table] for table in self.tables]}


@dataclass(frozen=True)
class ClassificationReport:
    """Scores of each class, averages and confusion matrix. Empty for tasks without classes."""

    unit: str = "class"  # what a line is about: class, label, tag, or entity
    classes: dict[str, ClassScore] = field(default_factory=dict)
    averages: dict[str, ClassScore] = field(default_factory=dict)
    confusion: ConfusionMatrix | MultilabelConfusion | None = None

    def json(self) -> dict[str, Any]:
        """`classes`, `averages` and `confusion`; nothing where there are no classes."""
        if not self.classes:
            return {}
        return {
            "classes": {name: asdict(score) for name, score in self.classes.items()},
            "averages": {name: asdict(score) for name, score in self.averages.items()},
            "confusion": None if self.confusion is None else self.confusion.json(),
        }


@runtime_checkable
class HasReport(Protocol):
    """A meter with scores per class."""

    def report(self) -> ClassificationReport:
        """Scores of each class, of the records added so far."""


def report_of(meter: object) -> ClassificationReport:
    """The report of a meter; an empty one where it has no classes."""
    return meter.report() if isinstance(meter, HasReport) else ClassificationReport()


def class_scores(counts: LabelCounts, labels: Sequence[str]) -> dict[str, ClassScore]:
    """One for each label, in their order."""
    columns = (counts.precision, counts.recall, counts.f1, counts.support)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        label: ClassScore(precision, recall, f1, int(support))
        for label, (precision, recall, f1, support) in zip(labels, rows, strict=True)
    }


def averages(counts: LabelCounts, *, micro: bool = False, absent: bool = False) -> dict[str, ClassScore]:
    """Macro and support-weighted means over the classes; `micro` weights every row equally."""
    support = int(counts.gold.sum())
    means = {"macro": counts.macro(absent=absent), "weighted": counts.weighted()}
    if micro:
        means = {"micro": counts.micro(), **means}
    return {name: _average(mean, support) for name, mean in means.items()}


def _average(mean: Average, support: int) -> ClassScore:
    return ClassScore(float(mean.precision), float(mean.recall), float(mean.f1), support)


class NamedConfusion:
    """Counts of (true name, predicted name), for classes that become known row by row."""

    def __init__(self) -> None:
        self.cells: Counter[tuple[str, str]] = Counter()

    def add(self, true: str, predicted: str) -> None:
        self.cells[true, predicted] += 1

    def add_many(self, true: Sequence[object], predicted: Sequence[object]) -> None:
        """Two rows of names, of one length."""
        self.cells.update(zip(map(str, true), map(str, predicted), strict=True))

    def names(self) -> list[str]:
        return sorted({name for pair in self.cells for name in pair})

    def report(self, unit: str, labels: Sequence[str] | None = None) -> ClassificationReport:
        """Scores of every name that occurs, or of these `labels`."""
        names = self.names() if labels is None else list(labels)
        if not names:
            return ClassificationReport(unit)
        confusion = ConfusionMatrix.of_names(self.cells, names)
        counts = LabelCounts.of_table(confusion.matrix())
        return ClassificationReport(unit, class_scores(counts, names), averages(counts), confusion)


def add_entities(confusion: NamedConfusion, predicted: Sequence[Any], gold: Sequence[Any]) -> None:
    """Entities (start, end, type) of one record: same boundaries are compared, others are missed or made up."""
    ours = {(start, end): kind for start, end, kind in predicted}
    theirs = {(start, end): kind for start, end, kind in gold}
    for bounds, kind in theirs.items():
        confusion.add(kind, ours.get(bounds, NO_ENTITY))
    for bounds, kind in ours.items():
        if bounds not in theirs:
            confusion.add(NO_ENTITY, kind)
