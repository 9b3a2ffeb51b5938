"""Word vectors with negative sampling: skip-gram and CBOW (word2vec, Mikolov et al. 2013).

Both train two vectors per word, so that the product of word and context vector is high for neighbors in the text and
low for randomly sampled words. Skip-gram predicts every neighbor from the center word; CBOW predicts the center word
from the mean of its neighbors.

The text is split into blocks of `LENGTH` center words with the neighbors of the first and last. All scores of a block
are one matrix product, of which only the window is used: more arithmetic than needed, but a row of the table is
fetched once per block instead of once per pair. The negative words are shared by the centers of a block and weighted,
so that a pair has `negatives` of them on average. Products use numpy in several threads; `torch.bmm` was three times
slower here.

A neighbor at distance d counts (window − d + 1) / window, the expected value of word2vec's random window size. Steps
are AdaGrad with one accumulator per row (Duchi et al. 2011), so that rare words take larger steps.

Shapes: B blocks, L centers, C = L + 2 × window contexts, K negative words, D width, V words.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from regard.errors import InputError, setting
from regard.progress import OnProgress, Progress

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer[Any]]

LENGTH = 64  # center words of a block
BLOCKS = 64  # blocks per step
NEGATIVES = 64  # negative words per block
POWER = 0.75  # negative words are sampled by count ** POWER


@dataclass(frozen=True)
class NegativeSamplingSettings:
    """Training settings of skip-gram and CBOW."""

    kind: Literal["skipgram", "cbow"] = "skipgram"
    width: int = 100
    window: int = 5
    negatives: float = 5.0
    subsample: float = 1e-4  # words with a higher relative frequency are randomly left out; 0 disables it
    epochs: int = 5
    lr: float = 0.1  # learning rate, decays linearly to 0
    seed: int = 0
    threads: int = 0  # 0: as many as torch uses; the result does not depend on it

    def __post_init__(self) -> None:
        if self.kind not in ("skipgram", "cbow"):
            raise InputError(f'kind "{self.kind}" is not one of skipgram, cbow.')
        for name in ("width", "window", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{setting(name)} is {getattr(self, name)}, expected 1 or more.")
        for name in ("negatives", "lr"):
            if not getattr(self, name) > 0:
                raise InputError(f"{setting(name)} is {getattr(self, name)}, expected more than 0.")
        if self.subsample < 0 or self.threads < 0:
            values = f"{setting('subsample')} is {self.subsample:g} and threads is {self.threads}"
            raise InputError(f"{values}, expected 0 or more.")


@dataclass
class AdaGradTable:
    """A table of vectors trained by AdaGrad, with the sum of mean squared gradients per row."""

    rows_VD: Floats
    squares_V: Floats

    @classmethod
    def of(cls, rows_VD: Floats) -> AdaGradTable:
        return cls(rows_VD, np.full(len(rows_VD), 1e-8, np.float32))

    def ascend(self, ids: Ints, gradients: Floats, lr: float) -> None:
        """One step of gradient ascent; gradients of the same row are added first."""
        rows, sums = sum_rows(ids, gradients)
        squares_V = torch.from_numpy(self.squares_V)
        squares = squares_V.index_select(0, rows) + sums.square().mean(1)
        squares_V.index_copy_(0, rows, squares)
        sums *= (lr / squares.sqrt())[:, None]
        torch.from_numpy(self.rows_VD).index_add_(0, rows, sums)


def sum_rows(ids: Ints, rows: Floats) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct ids in order, and for each the sum of its rows, added in the given order."""
    ordered, order = torch.sort(torch.from_numpy(np.ascontiguousarray(ids).astype(np.int64)), stable=True)
    results, counts = torch.unique_consecutive(ordered, return_counts=True)
    sums = torch.nn.functional.embedding_bag(order, torch.from_numpy(rows), counts.cumsum(0) - counts, mode="sum")
    return results, sums


@dataclass(frozen=True)
class CenterBlocks:
    """Blocks of a text with their negative words."""

    centers_BL: Ints
    contexts_BC: Ints
    weights_BLC: Floats  # of each neighbor; 0 outside of the window
    negatives_BK: Ints


@dataclass(frozen=True)
class BlockGradients:
    """Gradients of the log-likelihood, one row for each center, context and negative word."""

    centers: Floats
    contexts: Floats
    negatives: Floats


def skipgram_gradients(inner_VD: Floats, outer_VD: Floats, blocks: CenterBlocks, negatives: float) -> BlockGradients:
    """Skip-gram: gradients of the sum over centers and neighbors of w · (log σ(x·y) + Σ log σ(−x·n)).

    x is the word vector of the center, y and n are the context vectors of the neighbor and of the negative words.
    """
    x_BLD, y_BCD, n_BKD = inner_VD[blocks.centers_BL], outer_VD[blocks.contexts_BC], outer_VD[blocks.negatives_BK]
    near_BLC = sigmoid(-(x_BLD @ y_BCD.swapaxes(1, 2)))
    near_BLC *= blocks.weights_BLC
    far_BLK = sigmoid(x_BLD @ n_BKD.swapaxes(1, 2))
    far_BLK *= blocks.weights_BLC.sum(-1, keepdims=True) * np.float32(-negatives / n_BKD.shape[1])
    return BlockGradients(
        near_BLC @ y_BCD + far_BLK @ n_BKD,
        near_BLC.swapaxes(1, 2) @ x_BLD,
        far_BLK.swapaxes(1, 2) @ x_BLD,
    )


def cbow_gradients(inner_VD: Floats, outer_VD: Floats, blocks: CenterBlocks, negatives: float) -> BlockGradients:
    """CBOW: gradients of the sum over centers of log σ(h·y) + Σ log σ(−h·n).

    h is the weighted mean of the word vectors of the neighbors, y and n are context vectors of center and negatives.
    """
    c_BCD, y_BLD, n_BKD = inner_VD[blocks.contexts_BC], outer_VD[blocks.centers_BL], outer_VD[blocks.negatives_BK]
    total_BL1 = blocks.weights_BLC.sum(-1, keepdims=True)
    has_BL1 = (total_BL1 > 0).astype(np.float32)
    mean_BLC = blocks.weights_BLC / np.maximum(total_BL1, np.float32(1e-6))
    h_BLD = mean_BLC @ c_BCD
    near_BL1 = sigmoid(-(h_BLD * y_BLD).sum(-1, keepdims=True)) * has_BL1
    far_BLK = sigmoid(h_BLD @ n_BKD.swapaxes(1, 2))
    far_BLK *= has_BL1 * np.float32(-negatives / n_BKD.shape[1])
    step_BLD = near_BL1 * y_BLD + far_BLK @ n_BKD
    return BlockGradients(near_BL1 * h_BLD, mean_BLC.swapaxes(1, 2) @ step_BLD, far_BLK.swapaxes(1, 2) @ h_BLD)


def sigmoid(x: Floats) -> Floats:
    """The logistic function in place, with tanh, which is fast and does not overflow."""
    x *= np.float32(0.5)
    np.tanh(x, out=x)
    x += np.float32(1)
    x *= np.float32(0.5)
    return x


class NegativeSampling:
    """Trains on an array of word ids; `bounds` are the bounds of its lines, which no window crosses."""

    def __init__(self, counts: Ints, settings: NegativeSamplingSettings) -> None:
        self.settings, self.counts = settings, np.asarray(counts, np.int64)
        if len(self.counts) < 2 or self.counts.min() < 1:
            raise InputError(f"{len(self.counts)} words were given, expected at least 2, each with its count.")
        self.random = np.random.default_rng(settings.seed)
        cumulative = np.cumsum(self.counts**POWER)
        self.edges = cumulative / cumulative[-1]
        size = (len(self.counts), settings.width)
        start = (self.random.random(size, np.float32) - np.float32(0.5)) / np.float32(settings.width)
        self.word_table, self.context_table = AdaGradTable.of(start), AdaGradTable.of(np.zeros(size, np.float32))

    def train(self, ids: Ints, bounds: Ints, *, progress: OnProgress | None = None) -> Floats:
        """Train for all epochs; returns the vectors. `progress` receives the center words so far, of about how many."""
        check_text(ids, bounds, len(self.counts))
        threads = self.settings.threads or torch.get_num_threads()
        keep = self.keep_probability() @ self.counts / self.counts.sum()
        total, done = max(1.0, keep * len(ids) * self.settings.epochs), 0
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(self.settings.epochs):
                for blocks in self.batches(ids, bounds):
                    rate = self.settings.lr * max(1e-3, 1 - done / total)
                    self.step(blocks, rate, pool, threads)
                    done += blocks.centers_BL.size
                    if progress is not None:
                        progress(Progress("words", min(done, int(total)), int(total)))
        return self.word_table.rows_VD

    def keep_probability(self) -> npt.NDArray[np.float64]:
        """The probability that an occurrence of each word is kept; lower for frequent words."""
        if self.settings.subsample == 0:
            return np.ones(len(self.counts))
        rarity = self.settings.subsample * self.counts.sum() / self.counts
        probability: npt.NDArray[np.float64] = np.minimum(1, np.sqrt(rarity) + rarity)
        return probability

    def batches(self, ids: Ints, bounds: Ints) -> Iterator[CenterBlocks]:
        """One epoch: the subsampled text, its blocks in random order."""
        window = self.settings.window
        keep = self.random.random(len(ids), np.float32) < self.keep_probability().astype(np.float32)[ids]
        lines = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))[keep]
        ids = ids[keep]
        blank = -len(ids) % LENGTH + window
        ids, lines = np.pad(ids, (window, blank)), np.pad(lines, (window, blank), constant_values=-1)
        order = self.random.permutation((len(ids) - 2 * window) // LENGTH)
        band_LC = band(window)
        for first in range(0, len(order), BLOCKS):
            contexts = order[first : first + BLOCKS, None] * LENGTH + np.arange(LENGTH + 2 * window)
            line_BC = lines[contexts]
            line_BL = line_BC[:, window:-window]
            weights = band_LC * ((line_BL[:, :, None] == line_BC[:, None]) & (line_BL[:, :, None] >= 0))
            negatives = np.searchsorted(self.edges, self.random.random((len(contexts), NEGATIVES)), side="right")
            ids_BC = ids[contexts]
            yield CenterBlocks(ids_BC[:, window:-window], ids_BC, weights, np.minimum(negatives, len(self.counts) - 1))

    def step(self, blocks: CenterBlocks, rate: float, pool: ThreadPoolExecutor, threads: int) -> None:
        """Compute the gradients in several threads, then update both tables."""
        gradients = skipgram_gradients if self.settings.kind == "skipgram" else cbow_gradients

        def compute(part: CenterBlocks) -> BlockGradients:
            return gradients(self.word_table.rows_VD, self.context_table.rows_VD, part, self.settings.negatives)

        results = list(pool.map(compute, _split(blocks, threads)))
        centers, contexts = _flat([g.centers for g in results]), _flat([g.contexts for g in results])
        negatives, negative_ids = _flat([g.negatives for g in results]), blocks.negatives_BK.reshape(-1)
        center_ids, context_ids = blocks.centers_BL.reshape(-1), blocks.contexts_BC.reshape(-1)
        if self.settings.kind == "cbow":
            centers, contexts, center_ids, context_ids = contexts, centers, context_ids, center_ids
        self.word_table.ascend(center_ids, centers, rate)
        self.context_table.ascend(
            np.concatenate([context_ids, negative_ids]), np.concatenate([contexts, negatives]), rate
        )


def band(window: int) -> Floats:
    """(L, C) the weight of each context for each center, whose position is its index plus `window`."""
    distance = np.abs(np.arange(LENGTH + 2 * window)[None] - np.arange(LENGTH)[:, None] - window)
    return np.where(distance == 0, 0, np.maximum(0, window + 1 - distance) / window).astype(np.float32)


def check_text(ids: Ints, bounds: Ints, words: int) -> None:
    """Raise an error for bounds or ids that do not fit the text."""
    if ids.ndim != 1 or bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(ids):
        raise InputError(f"bounds must run from 0 to the {len(ids)} ids of the text.")
    if len(ids) == 0 or ids.min() < 0 or ids.max() >= words:
        raise InputError(f"the text is empty, or has an id outside of the {words} words.")


def _split(blocks: CenterBlocks, parts: int) -> list[CenterBlocks]:
    edges = np.linspace(0, len(blocks.centers_BL), min(parts, len(blocks.centers_BL)) + 1).astype(int)
    return [
        CenterBlocks(blocks.centers_BL[i:j], blocks.contexts_BC[i:j], blocks.weights_BLC[i:j], blocks.negatives_BK[i:j])
        for i, j in pairwise(edges)
    ]


def _flat(parts: list[Floats]) -> Floats:
    return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
