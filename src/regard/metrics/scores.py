"""Scores of labels and numbers, from counts.

Everything about labels comes from three counts a label: how often it was hit, predicted and true. The counts may have
axes before the one of the labels (a thousand replicates of a bootstrap, say); the scores then have them too. A division
by zero gives 0, as in scikit-learn, without a warning.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]


class Average(NamedTuple):
    """Precision, recall and F1 over all labels."""

    precision: Any
    recall: Any
    f1: Any


def ratio(above: ArrayLike, below: ArrayLike) -> Any:
    """above / below, and 0 where there is nothing to divide by."""
    top, bottom = np.broadcast_arrays(np.asarray(above, np.float64), np.asarray(below, np.float64))
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom != 0)[()]


def f1(hits: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> Any:
    """The harmonic mean of precision and recall, from counts."""
    return ratio(2 * np.asarray(hits, np.float64), np.asarray(predicted, np.float64) + np.asarray(gold, np.float64))


@dataclass(frozen=True)
class LabelCounts:
    """How often each label was hit, predicted and true; labels are the last axis."""

    hits: NDArray[Any]
    predicted: NDArray[Any]
    gold: NDArray[Any]

    @classmethod
    def of_table(cls, table: NDArray[Any]) -> LabelCounts:
        """Of a confusion matrix (true label, predicted label)."""
        return cls(np.diagonal(table, axis1=-2, axis2=-1), table.sum(-2), table.sum(-1))

    @classmethod
    def of_sets(cls, predicted: NDArray[np.bool_], gold: NDArray[np.bool_]) -> LabelCounts:
        """Of rows that have any number of labels: two tables (rows, labels) of True and False."""
        return cls((predicted & gold).sum(0), predicted.sum(0), gold.sum(0))

    @property
    def precision(self) -> Numbers:
        return np.asarray(ratio(self.hits, self.predicted))

    @property
    def recall(self) -> Numbers:
        return np.asarray(ratio(self.hits, self.gold))

    @property
    def f1(self) -> Numbers:
        return np.asarray(f1(self.hits, self.predicted, self.gold))

    @property
    def support(self) -> NDArray[Any]:
        return self.gold

    def micro(self) -> Average:
        """Micro average: every row counts equally; with one label per row all three are the accuracy."""
        hits, predicted, gold = self.hits.sum(-1), self.predicted.sum(-1), self.gold.sum(-1)
        return Average(ratio(hits, predicted), ratio(hits, gold), f1(hits, predicted, gold))

    def macro(self, *, absent: bool = False) -> Average:
        """Macro average: every label counts equally. Labels that never occur are ignored, unless `absent`."""
        weights = np.ones(self.gold.shape) if absent else (self.gold + self.predicted > 0).astype(np.float64)
        return self._mean(weights)

    def weighted(self) -> Average:
        """Average weighted by the number of true rows of each label."""
        return self._mean(self.gold)

    def _mean(self, weights: NDArray[Any]) -> Average:
        whole = weights.sum(-1)
        return Average(*(ratio((part * weights).sum(-1), whole) for part in (self.precision, self.recall, self.f1)))


class ConfusionCounts:
    """A sparse confusion matrix: memory grows with the cells that occur, so thousands of labels are possible."""

    def __init__(self, labels: int) -> None:
        if labels < 1:
            raise InputError(f"{labels} labels were given; expected at least 1.")
        self.labels = labels
        self.rows = 0
        self._cells: Counter[int] = Counter()

    def add_many(self, predicted: ArrayLike, gold: ArrayLike) -> None:
        """Numbers of labels, two arrays of one length."""
        first, second = self._numbers(predicted, "predicted"), self._numbers(gold, "gold")
        if len(first) != len(second):
            raise InputError(f"{len(first)} predicted labels for {len(second)} gold ones; expected as many.")
        cells, counts = np.unique(second * self.labels + first, return_counts=True)
        self._cells.update(dict(zip(cells.tolist(), counts.tolist(), strict=True)))
        self.rows += len(first)

    def _numbers(self, values: ArrayLike, name: str) -> Integers:
        result = np.atleast_1d(np.asarray(values))
        if result.ndim != 1 or (result.size and result.dtype.kind not in "iu"):
            raise InputError(
                f"The {name} labels are {result.dtype} of shape {result.shape}; expected a row of integers."
            )
        if result.size and (result.min() < 0 or result.max() >= self.labels):
            wrong = result.min() if result.min() < 0 else result.max()
            raise InputError(f"{name.capitalize()} label {wrong} is not in 0 … {self.labels - 1}.")
        return result.astype(np.int64)

    def cells(self) -> tuple[Integers, Integers, Integers]:
        """True label, predicted label and count of each cell that is not 0, in order."""
        keys = np.array(sorted(self._cells), np.int64)
        counts = np.array([self._cells[key] for key in keys.tolist()], np.int64)
        return keys // self.labels, keys % self.labels, counts

    def table(self) -> Integers:
        """The whole matrix (true label, predicted label)."""
        result = np.zeros((self.labels, self.labels), np.int64)
        gold, predicted, counts = self.cells()
        result[gold, predicted] = counts
        return result

    def counts(self) -> LabelCounts:
        gold, predicted, counts = self.cells()
        same = gold == predicted
        parts = ((gold[same], counts[same]), (predicted, counts), (gold, counts))
        return LabelCounts(*(np.bincount(labels, many, self.labels).astype(np.int64) for labels, many in parts))


def confusion(predicted: ArrayLike, gold: ArrayLike, labels: int) -> Integers:
    """The confusion matrix: how often each true label (row) was predicted as each label (column)."""
    result = ConfusionCounts(labels)
    result.add_many(predicted, gold)
    return result.table()


def accuracy(table: NDArray[Any]) -> float:
    """The fraction of rows on the diagonal of a confusion matrix."""
    return float(ratio(np.trace(table), table.sum()))


def matthews_correlation(counts: LabelCounts) -> Any:
    """Matthews correlation of predicted and true labels (Gorodkin 2004 for several); 0 if one side is constant."""
    hits, rows = counts.hits.sum(-1, dtype=np.float64), counts.gold.sum(-1, dtype=np.float64)
    predicted, gold = np.asarray(counts.predicted, np.float64), np.asarray(counts.gold, np.float64)
    together = hits * rows - (predicted * gold).sum(-1)
    spread = (rows**2 - (predicted**2).sum(-1)) * (rows**2 - (gold**2).sum(-1))
    return ratio(together, np.sqrt(np.maximum(spread, 0)))


def subset_accuracy(predicted: NDArray[np.bool_], gold: NDArray[np.bool_]) -> float:
    """The fraction of rows whose labels are all right; boolean tables (rows, labels)."""
    return float(ratio((predicted == gold).all(-1).sum(), len(gold)))


def pearson(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Pearson's linear correlation; 0 if one side is constant."""
    first, second = _centered(predicted), _centered(gold)
    below = math.sqrt(float(first @ first)) * math.sqrt(float(second @ second))
    return float(np.clip(ratio(first @ second, below), -1, 1))


def _centered(values: ArrayLike) -> Numbers:
    result = np.asarray(values, np.float64)
    if not result.size or (result == result[0]).all():  # the mean of equal numbers need not be that number
        return np.zeros(result.shape)
    return np.asarray(result - result.mean())


def ranks(values: ArrayLike) -> Numbers:
    """The rank of each value from 1; ties get their mean rank."""
    _, groups, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    shared: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[groups]
    return shared


def spearman(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Spearman's correlation: Pearson's correlation of the ranks."""
    return pearson(ranks(predicted), ranks(gold))


def mse(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Mean squared error."""
    return float(np.mean(np.square(np.subtract(predicted, gold, dtype=np.float64))))


def mae(predicted: ArrayLike, gold: ArrayLike) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(np.subtract(predicted, gold, dtype=np.float64))))


def r2(predicted: ArrayLike, gold: ArrayLike) -> float:
    """R²: the fraction of the variance that is explained. If gold is constant: 1 if all is right, else 0."""
    missed = float(np.square(np.subtract(gold, predicted, dtype=np.float64)).sum())
    return float(explained_variance(missed, np.square(_centered(gold)).sum()))


def explained_variance(missed: ArrayLike, whole: ArrayLike) -> Any:
    """1 - missed / whole, for sums of squares."""
    return np.where(np.asarray(whole) > 0, 1 - ratio(missed, whole), np.asarray(missed) == 0)[()]


def perplexity(nll: float, count: float) -> float:
    """exp of the mean negative log-likelihood (natural logarithm) a token; inf where it is too large for a number."""
    if count <= 0:
        raise InputError(f"The perplexity of {count} tokens was asked for; expected at least one.")
    return math.exp(nll / count) if nll / count < 709 else math.inf


def bits_per_character(nll: float, characters: float) -> float:
    """Bits a character, which compares models whatever their tokens are."""
    if characters <= 0:
        raise InputError(f"Bits a character of {characters} characters were asked for; expected at least one.")
    return nll / characters / math.log(2)
