"""Thresholds of labels that do not exclude each other: the probability above which a label is predicted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from regard.errors import InputError

FIXED = 0.5  # without validation rows
FOLDS = 5  # by which the three kinds of thresholds are compared
MIN_POSITIVES = 5  # rows with a label, below which it gets the threshold that all labels share
ROUNDS = 50
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def tune_thresholds(probabilities: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
    """A threshold for each label with the highest micro F1 on these (rows, labels) probabilities.

    Three kinds are compared by cross-validation on the rows: 0.5, one threshold for all labels, one for each label.
    More complex ones are used only if they do better on rows that they were not chosen on.
    """
    chances, gold = np.asarray(probabilities, np.float64), np.asarray(targets) > 0.5
    if chances.ndim != 2 or chances.shape != gold.shape:
        raise InputError(f"tables of {chances.shape} and {gold.shape} were given; expected (rows, labels) twice.")
    kinds = (_fixed, _shared, _separate)
    scores = []
    folds = np.arange(len(chances)) % FOLDS
    for kind in kinds:
        predicted = np.zeros_like(gold)
        for fold in range(FOLDS):
            here = folds == fold
            predicted[here] = chances[here] > kind(chances[~here], gold[~here])
        scores.append(micro_f1(predicted, gold))
    return kinds[int(np.argmax(scores))](chances, gold)


def micro_f1(predicted: Flags, gold: Flags) -> float:
    """F1 over all labels of all rows; 0 where nothing is predicted and nothing is true."""
    size = int(predicted.sum()) + int(gold.sum())
    return 2 * int((predicted & gold).sum()) / size if size else 0.0


def _fixed(chances: Floats, gold: Flags) -> Floats:
    return np.full(chances.shape[1], FIXED)


def _shared(chances: Floats, gold: Flags) -> Floats:
    return np.repeat(_best_thresholds(chances.reshape(-1, 1), gold.reshape(-1, 1)), chances.shape[1])


def _separate(chances: Floats, gold: Flags) -> Floats:
    return np.where(gold.sum(0) < MIN_POSITIVES, _shared(chances, gold), _best_thresholds(chances, gold))


def _best_thresholds(chances: Floats, gold: Flags) -> Floats:
    """The thresholds of the columns with the highest micro F1 together, which is exact.

    F1 is 2 * hits / (predicted + true). For the best F1, 2 * hits - F1 * predicted is largest, in each column on its
    own (Dinkelbach 1967): the columns are chosen for the F1 so far, until it grows no more.
    """
    if not gold.any():
        return np.full(chances.shape[1], FIXED)
    order = np.argsort(-chances, axis=0, kind="stable")
    ranked = np.take_along_axis(chances, order, axis=0)
    hits = np.vstack([np.zeros(chances.shape[1]), np.cumsum(np.take_along_axis(gold, order, axis=0), axis=0)])
    counts = np.arange(len(chances) + 1)[:, None]
    ends = np.ones((1, chances.shape[1]))
    edges = np.vstack([ends, ranked, 0 * ends])
    is_cut = edges[:-1] > edges[1:]  # equal probabilities are on one side of a threshold
    is_cut[-1] = True
    f1, best = 0.0, np.zeros(chances.shape[1], np.int64)
    for _ in range(ROUNDS):
        best = np.where(is_cut, 2 * hits - f1 * counts, -np.inf).argmax(0)
        reached = np.take_along_axis(hits, best[None], axis=0).sum()
        newer = 2 * reached / (best.sum() + gold.sum())
        if newer <= f1 + 1e-12:
            break
        f1 = newer
    columns = np.arange(chances.shape[1])
    middle: Floats = (edges[best, columns] + edges[best + 1, columns]) / 2
    return middle
