"""GloVe (Pennington et al. 2014): word vectors whose products are the logarithms of co-occurrence counts.

It works as follows:
1. Count how often two words occur within a window; a pair at distance d counts 1 / d.
2. Fit two vectors and two biases per word so that (word vector) . (context vector) + biases = log count, by weighted
   least squares: a pair with weight w counts min(1, w / x_max) ** 0.75, so that rare pairs have little influence.
3. The vector of a word is the sum of its two vectors.

Pairs are counted in chunks: both ids as one integer, sorted, equal ones added; chunks of similar size are merged. A
distinct pair takes 12 bytes, twice that during a merge. Beyond `max_pairs` the lightest pairs are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from regard.errors import InputError, setting
from regard.progress import OnProgress, Progress
from regard.word_vectors.negative_sampling import AdaGradTable, Floats, Ints, check_text

CHUNK = 1 << 20  # words counted at once
PAIRS = 1 << 15  # maximum pairs per step
STEPS = 200  # minimum steps per epoch, if there are enough pairs for steps of 64
Run = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Cooccurrences:
    """Distinct pairs of words, the smaller id on the left, with their weights (distance-weighted counts)."""

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    dropped: int = 0  # distinct pairs that were removed to limit memory

    def __len__(self) -> int:
        return len(self.left)


def count_cooccurrences(
    ids: Ints,
    bounds: Ints,
    words: int,
    *,
    window: int = 10,
    max_pairs: int = 50_000_000,
    progress: OnProgress | None = None,
) -> Cooccurrences:
    """Pairs of words in the same line, at most `window` apart."""
    check_text(ids, bounds, words)
    if window < 1 or max_pairs < 1:
        raise InputError(f"{setting('window')} is {window} and max_pairs is {max_pairs}, expected 1 or more.")
    lines = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
    runs: list[Run] = []
    forgotten = 0
    for first in range(0, len(ids), CHUNK):
        runs.append(_added(*_near(ids, lines, first, window, words)))
        while len(runs) > 1 and len(runs[-1][0]) * 2 > len(runs[-2][0]):
            runs.append(_merged(runs.pop(), runs.pop()))
        runs[0], lost = _heaviest(runs[0], max_pairs)
        forgotten += lost
        if progress is not None:
            progress(Progress("words counted", min(first + CHUNK, len(ids)), len(ids)))
    while len(runs) > 1:
        runs.append(_merged(runs.pop(), runs.pop()))
    (keys, weights), lost = _heaviest(runs[0], max_pairs)
    left, right = np.divmod(keys, words)
    return Cooccurrences(left.astype(np.int32), right.astype(np.int32), weights, forgotten + lost)


def _near(ids: Ints, lines: Ints, first: int, window: int, words: int) -> Run:
    """All pairs whose left word is in the chunk, with their weights."""
    keys, weights = [], []
    for distance in range(1, window + 1):
        last = min(first + CHUNK, len(ids) - distance)
        if last <= first:
            break
        same = lines[first:last] == lines[first + distance : last + distance]
        one = ids[first:last][same].astype(np.int64)
        other = ids[first + distance : last + distance][same].astype(np.int64)
        keys.append(np.minimum(one, other) * words + np.maximum(one, other))
        weights.append(np.full(len(one), 1 / distance, np.float32))
    if not keys:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    return np.concatenate(keys), np.concatenate(weights)


def _added(keys: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> Run:
    """Each distinct key in order, with the sum of its weights."""
    if not len(keys):
        return keys, weights
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[begins], np.add.reduceat(weights, begins, dtype=np.float32)


def _merged(one: Run, other: Run) -> Run:
    return _added(np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))


def _heaviest(run: Run, max_pairs: int) -> tuple[Run, int]:
    """If there are more than `max_pairs` pairs, the heaviest half of `max_pairs`, and how many were dropped."""
    keys, weights = run
    if len(keys) <= max_pairs:
        return run, 0
    heaviest = np.sort(np.argpartition(-weights, max(1, max_pairs // 2))[: max(1, max_pairs // 2)])
    return (keys[heaviest], weights[heaviest]), len(keys) - len(heaviest)


@dataclass(frozen=True)
class GloveSettings:
    """Training settings of GloVe."""

    width: int = 100
    epochs: int = 15
    lr: float = 0.1
    x_max: float = 100.0  # weight from which a pair counts in full; below, (weight / x_max) ** 0.75
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{setting(name)} is {getattr(self, name)}, expected 1 or more.")
        for name in ("lr", "x_max"):
            if not getattr(self, name) > 0:
                raise InputError(f"{setting(name)} is {getattr(self, name)}, expected more than 0.")


class Glove:
    """Two vectors and biases per word, in rows [vector, bias, 1] and [vector, 1, bias]: a product adds the biases."""

    def __init__(self, words: int, settings: GloveSettings) -> None:
        self.settings = settings
        self.random = np.random.default_rng(settings.seed)
        self.word_table, self.context_table = (AdaGradTable.of(self._start(words, one)) for one in (-1, -2))

    def _start(self, words: int, one: int) -> Floats:
        width = self.settings.width
        rows = (self.random.random((words, width + 2), np.float32) - np.float32(0.5)) / np.float32(width)
        rows[:, -2:] = 0
        rows[:, one] = 1
        return rows

    def train(self, pairs: Cooccurrences, *, progress: OnProgress | None = None) -> Floats:
        """Train on all pairs for the set number of epochs; returns the sum of the two vectors of each word."""
        if len(pairs) == 0:
            raise InputError("there is no pair of words to train on. Give lines of at least two words.")
        total, done = len(pairs) * self.settings.epochs, 0
        for _ in range(self.settings.epochs):
            for inner, outer, weights in self.batches(pairs):
                self.step(inner, outer, weights, self.settings.lr * max(1e-3, 1 - done / total))
                done += len(inner)
                if progress is not None:
                    progress(Progress("pairs", done, total))
        return self.word_table.rows_VD[:, :-2] + self.context_table.rows_VD[:, :-2]

    def batches(self, pairs: Cooccurrences) -> Iterator[tuple[Ints, Ints, Floats]]:
        """One epoch in random order; which word of a pair uses the word table is random."""
        order = self.random.permutation(len(pairs)).astype(np.int32 if len(pairs) < 1 << 31 else np.int64)
        size = min(PAIRS, max(64, len(pairs) // STEPS))
        for first in range(0, len(order), size):
            some = order[first : first + size]
            turned = self.random.random(len(some)) < 0.5
            left, right = pairs.left[some], pairs.right[some]
            yield np.where(turned, right, left), np.where(turned, left, right), pairs.weights[some]

    def step(self, inner: Ints, outer: Ints, weights: Floats, rate: float) -> None:
        """One step of gradient descent on Σ f(weight) · (product − log weight)² / 2."""
        x, y = (
            torch.from_numpy(table.rows_VD).index_select(0, torch.from_numpy(ids.astype(np.int64)))
            for table, ids in ((self.word_table, inner), (self.context_table, outer))
        )
        weight = torch.from_numpy(weights)
        fraction = (weight / self.settings.x_max).clamp(max=1).pow(0.75)
        slope = (fraction * (weight.log() - (x * y).sum(1)))[:, None]
        up, across = slope * y, slope * x
        up[:, -1], across[:, -2] = 0, 0  # the constant ones are not trained
        self.word_table.ascend(inner, up.numpy(), rate)
        self.context_table.ascend(outer, across.numpy(), rate)
