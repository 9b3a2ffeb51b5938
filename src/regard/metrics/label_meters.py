"""Meters of labels: one per row, or any number."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError, did_you_mean
from regard.metrics.confidence import (
    BLOCK,
    Replicates,
    Score,
    Statistic,
    Sums,
    interval,
    require_rows,
    resample_counts,
    wilson,
)
from regard.metrics.paired.rows import RowScore, RowTable, joined
from regard.metrics.registry import CustomScores, count_metrics
from regard.metrics.report import ClassificationReport, ConfusionMatrix, MultilabelConfusion, averages, class_scores
from regard.metrics.scores import ConfusionCounts, LabelCounts, matthews_correlation

Label = str | int
MANY_LABELS = 200  # above which rows are kept for the accuracy alone


class LabelNames:
    """Labels by name or by number."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        if len(self._numbers) != len(self.labels) or not self.labels:
            raise InputError(
                f"The labels are {', '.join(self.labels) or 'none'}; expected each once, and at least one."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def number(self, label: Label) -> int:
        if isinstance(label, str):
            if label not in self._numbers:
                raise InputError(f'"{label}" is not one of the {len(self)} labels.{did_you_mean(label, self.labels)}')
            return self._numbers[label]
        if not 0 <= label < len(self.labels):
            raise InputError(f"Label {label} is not in 0 … {len(self.labels) - 1}.")
        return int(label)


class LabelMeter:
    """One label per row: accuracy and macro F1; with two labels also F1 of the last one and Matthews correlation."""

    higher_is_better = True

    def __init__(self, labels: Sequence[str], *, main: str = "accuracy", seed: int = 0) -> None:
        self.names = LabelNames(labels)
        self.main = main
        self.confusion = ConfusionCounts(len(self.names))
        self._seed = seed
        self._predicted, self._gold = array("q"), array("q")
        self._all_rows: tuple[array[int], array[int]] | None = None
        self._custom = CustomScores("label", seed=seed)
        self._statistics: dict[str, Callable[[LabelCounts], Any]] = {"macro_f1": _macro_f1}
        if len(self.names) == 2:
            self._statistics |= {"f1": _last_f1, "mcc": matthews_correlation}
        self._statistics |= count_metrics("label")
        if main not in ("accuracy", *self._statistics):
            raise InputError(
                f'"{main}" is not a score of this meter.{did_you_mean(main, ["accuracy", *self._statistics])}'
            )

    @property
    def rows(self) -> int:
        return self.confusion.rows + len(self._gold)

    def add(self, predicted: Label, gold: Label) -> None:
        ours, theirs = self.names.number(predicted), self.names.number(gold)  # check both before adding
        if self._custom:
            self._custom.add(self.names.labels[ours], self.names.labels[theirs])
        self._predicted.append(ours)
        self._gold.append(theirs)
        if self._all_rows is not None:
            self._all_rows[0].append(ours)
            self._all_rows[1].append(theirs)
        if len(self._gold) == BLOCK:
            self._flush()

    def add_many(self, predicted: ArrayLike, gold: ArrayLike) -> None:
        """Numbers of labels, two arrays of one length."""
        self.confusion.add_many(predicted, gold)
        if self._all_rows is not None:
            for part, labels in zip(self._all_rows, (predicted, gold), strict=True):
                part.extend(np.atleast_1d(labels).tolist())
        if self._custom:
            for ours, theirs in zip(np.atleast_1d(predicted).tolist(), np.atleast_1d(gold).tolist(), strict=True):
                self._custom.add(self.names.labels[ours], self.names.labels[theirs])

    def _flush(self) -> None:
        if self._gold:
            self.confusion.add_many(np.array(self._predicted), np.array(self._gold))
            self._predicted, self._gold = array("q"), array("q")

    def scores(self) -> dict[str, Score]:
        self._flush()
        require_rows(self.rows)
        counts = self.confusion.counts()
        sampled: dict[str, list[Any]] = {name: [] for name in self._statistics}
        for part in _redrawn_counts(self.confusion, self._seed):
            for name, statistic in self._statistics.items():
                sampled[name].append(statistic(part))
        result = {"accuracy": wilson(int(counts.hits.sum()), self.rows)}
        for name, statistic in self._statistics.items():
            result[name] = interval(float(statistic(counts)), np.concatenate(sampled[name]))
        if counts.hits.sum() == self.rows and (counts.gold > 0).sum() > 1:  # no replicate has an error either
            worse = _with_errors(counts, 1 - result["accuracy"].low)
            for name in ("macro_f1", "f1", "mcc"):
                if name in result:
                    low = min(result[name].low, float(self._statistics[name](worse)))
                    result[name] = replace(result[name], low=low)
        return {self.main: result[self.main], **result, **self._custom.scores()}

    def keep_rows(self) -> None:
        self._all_rows = array("q"), array("q")
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        """Whether each row is right; up to 200 labels also which label was predicted and which is true."""
        assert self._all_rows is not None, "keep_rows was not called"
        predicted, gold = (np.array(part, np.int64) for part in self._all_rows)
        right = (predicted == gold).astype(np.float64)
        features = [np.stack([right, np.ones(len(gold))], axis=1)]
        scores = {"accuracy": RowScore((0, 1))}
        if len(self.names) <= MANY_LABELS:
            one_hot = [_one_hot(labels, len(self.names)) for labels in (predicted, gold)]
            features += [one_hot[0] * one_hot[1], *one_hot]
            columns = tuple(range(2, 2 + 3 * len(self.names)))
            scores |= {
                name: RowScore(columns, _of_sums(of), limits=(-1.0 if name == "mcc" else 0.0, 1.0))
                for name, of in self._statistics.items()
            }
        if self.main in scores:
            scores = {self.main: scores[self.main], **scores}
        return joined([RowTable(np.hstack(features), scores), *self._custom.row_tables()])

    def report(self) -> ClassificationReport:
        """Scores of each label, and the confusion matrix."""
        self._flush()
        counts, labels = self.confusion.counts(), self.names.labels
        matrix = ConfusionMatrix.of_counts(self.confusion, labels)
        return ClassificationReport("class", class_scores(counts, labels), averages(counts), matrix)


def _one_hot(labels: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.asarray(labels[:, None] == np.arange(size), np.float64)


def _of_sums(statistic: Callable[[LabelCounts], Any]) -> Statistic:
    """A function of sums (3 * labels, …): hits, predicted and true rows of each label."""

    def of_sums(sums: Sums) -> Any:
        return statistic(LabelCounts(*np.split(np.asarray(sums).T, 3, axis=-1)))

    return of_sums


def _macro_f1(counts: LabelCounts) -> Any:
    return counts.macro().f1


def _micro_f1(counts: LabelCounts) -> Any:
    return counts.micro().f1


def _macro_f1_of_all(counts: LabelCounts) -> Any:
    return counts.macro(absent=True).f1


def _last_f1(counts: LabelCounts) -> Any:
    return counts.f1[..., -1]


def _with_errors(counts: LabelCounts, fraction: float) -> LabelCounts:
    """The counts if this fraction of the rows of each label were wrong, evenly over the other labels that occur."""
    wrong = fraction * counts.gold
    occurs = counts.gold > 0
    instead = np.where(occurs, wrong.sum() - wrong, 0.0) / (occurs.sum() - 1)
    return LabelCounts(counts.gold - wrong, counts.gold - wrong + instead, counts.gold)


def _redrawn_counts(confusion: ConfusionCounts, seed: int) -> Iterator[LabelCounts]:
    gold, predicted, counts = confusion.cells()
    same = gold == predicted
    for cells in resample_counts(counts, width=confusion.labels, seed=seed):
        parts = ((cells[:, same], gold[same]), (cells, predicted), (cells, gold))
        yield LabelCounts(*(_summed(part, labels, confusion.labels) for part, labels in parts))


def _summed(cells: NDArray[np.int64], labels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Cells of one label added up: (replicates, cells) to (replicates, size)."""
    result = np.zeros((len(cells), size), np.int64)
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    if len(present):
        result[:, present] = np.add.reduceat(cells[:, order], starts, axis=1)
    return result


class MultiLabelMeter:
    """Any number of labels per row: micro and macro F1, and the fraction of rows with exactly the right labels."""

    main, higher_is_better = "micro_f1", True

    def __init__(self, labels: Sequence[str], *, seed: int = 0) -> None:
        self.names = LabelNames(labels)
        self._replicates = Replicates(1 + 3 * len(self.names), seed=seed)
        self._custom = CustomScores("labels", seed=seed)
        self._statistics = count_metrics("labels")
        self._waiting: list[tuple[list[int], list[int]]] = []  # single rows, added in blocks, which is faster

    @property
    def rows(self) -> int:
        return self._replicates.rows + len(self._waiting)

    def add(self, predicted: Collection[Label], gold: Collection[Label]) -> None:
        """The labels of a row, by name or by number; none is an empty list."""
        for labels in (predicted, gold):
            if isinstance(labels, str):
                raise InputError(f'The labels of a row are the text "{labels}"; expected a list of labels.')
        number = self.names.number
        self._waiting.append(([number(label) for label in predicted], [number(label) for label in gold]))
        if len(self._waiting) == BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        flags = np.zeros((2, len(waiting), len(self.names)), bool)
        for index in (0, 1):
            labels = [label for pair in waiting for label in pair[index]]
            flags[index, np.repeat(np.arange(len(waiting)), [len(pair[index]) for pair in waiting]), labels] = True
        self._keep(flags[0], flags[1])

    def add_many(self, predicted: NDArray[np.bool_], gold: NDArray[np.bool_]) -> None:
        """Two tables (rows, labels) of True and False."""
        ours, theirs = np.asarray(predicted, bool), np.asarray(gold, bool)
        if ours.shape != theirs.shape or ours.ndim != 2 or ours.shape[1] != len(self.names):
            raise InputError(f"Tables of {ours.shape} and {theirs.shape}; expected (rows, {len(self.names)}) twice.")
        self._flush()
        self._keep(ours, theirs)

    def _keep(self, ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> None:
        if self._custom:
            for our_row, their_row in zip(ours, theirs, strict=True):
                self._custom.add(self._named(our_row), self._named(their_row))
        exact = (ours == theirs).all(1, keepdims=True)
        self._replicates.add_many(np.hstack([exact, ours & theirs, ours, theirs]))

    def _named(self, row: NDArray[np.bool_]) -> list[str]:
        return [self.names.labels[number] for number in np.flatnonzero(row)]

    def counts(self) -> LabelCounts:
        """Of each label, for a table of them."""
        self._flush()
        return self._counts(self._replicates.totals())

    def _counts(self, sums: NDArray[np.float64]) -> LabelCounts:
        return LabelCounts(*np.split(sums[1:].T, 3, axis=-1))

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        value, sampled = self.counts(), self._counts(self._replicates.sums())
        added = {name: interval(float(of(value)), of(sampled)) for name, of in self._statistics.items()}
        return {
            "micro_f1": interval(value.micro().f1, sampled.micro().f1),
            "macro_f1": interval(value.macro(absent=True).f1, sampled.macro(absent=True).f1),
            "exact": wilson(float(self._replicates.totals()[0]), self.rows),
            **added,
            **self._custom.scores(),
        }

    def keep_rows(self) -> None:
        self._replicates.keep_rows()
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        self._flush()
        rows = self._replicates.all_rows()
        features = np.hstack([rows, np.ones((len(rows), 1))])
        columns = tuple(range(1, 1 + 3 * len(self.names)))
        statistics = {"micro_f1": _micro_f1, "macro_f1": _macro_f1_of_all, **self._statistics}
        scores = {name: RowScore(columns, _of_sums(of)) for name, of in statistics.items()}
        scores["exact"] = RowScore((0, 1 + 3 * len(self.names)))
        return joined([RowTable(features, scores), *self._custom.row_tables()])

    def report(self) -> ClassificationReport:
        """Scores of each label, and its table of hits, misses and false predictions."""
        counts, labels = self.counts(), self.names.labels
        confusion = MultilabelConfusion.of_counts(counts, labels, self.rows)
        return ClassificationReport(
            "label", class_scores(counts, labels), averages(counts, micro=True, absent=True), confusion
        )
