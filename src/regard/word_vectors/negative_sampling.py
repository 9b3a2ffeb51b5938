"""Word vectors learned from their neighbours, with negative sampling: skip-gram and CBOW.

A text is a run of word ids. It is cut into blocks of `LENGTH` centres, each with the neighbours of its first and last
centre. Within a block all scores are one matrix product, of which the band of the window is kept: more arithmetic than
is needed, but arithmetic is what a processor has plenty of, and a row of a table is fetched once a block instead of
once a pair. The drawn words are shared by the centres of a block, each weighed so that a pair meets `negatives` of
them. The products are numpy's, in as many threads as there are cores: `torch.bmm` took three times as long here.

A neighbour at distance d counts (window − d + 1) / window, the mean over a window of random size as word2vec draws it.
Steps are AdaGrad's with one number a row, so that a rare word moves further at each of its few sights.

Letters of shapes: B blocks, L centres, C = L + 2 × window contexts, K drawn words, D width, V words.
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

LENGTH = 64  # centres of a block
BLOCKS = 64  # blocks of a step
NEGATIVES = 64  # words drawn for a block
POWER = 0.75  # of the counts that words are drawn by


@dataclass(frozen=True)
class NegativeSamplingSettings:
    """How vectors are learned from neighbours."""

    kind: Literal["skipgram", "cbow"] = "skipgram"
    width: int = 100
    window: int = 5
    negatives: float = 5.0
    subsample: float = 1e-4  # words more frequent than this are left out now and then; 0 leaves none out
    epochs: int = 5
    lr: float = 0.1  # falls to nothing in a straight line
    seed: int = 0
    threads: int = 0  # 0: as many as torch uses; the result is the same for any number

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
    """Rows that are moved by AdaGrad, with the sum of mean squares each row has seen."""

    rows_VD: Floats
    squares_V: Floats

    @classmethod
    def of(cls, rows_VD: Floats) -> AdaGradTable:
        return cls(rows_VD, np.full(len(rows_VD), 1e-8, np.float32))

    def ascend(self, ids: Ints, gradients: Floats, lr: float) -> None:
        """Move rows up their gradients; those of one row are added first."""
        rows, sums = sum_rows(ids, gradients)
        squares_V = torch.from_numpy(self.squares_V)
        squares = squares_V.index_select(0, rows) + sums.square().mean(1)
        squares_V.index_copy_(0, rows, squares)
        sums *= (lr / squares.sqrt())[:, None]
        torch.from_numpy(self.rows_VD).index_add_(0, rows, sums)


def sum_rows(ids: Ints, rows: Floats) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct ids in order, and for each the sum of its rows, added in the order they are given."""
    ordered, order = torch.sort(torch.from_numpy(np.ascontiguousarray(ids).astype(np.int64)), stable=True)
    results, counts = torch.unique_consecutive(ordered, return_counts=True)
    sums = torch.nn.functional.embedding_bag(order, torch.from_numpy(rows), counts.cumsum(0) - counts, mode="sum")
    return results, sums


@dataclass(frozen=True)
class CenterBlocks:
    """Some blocks of a text with the words drawn for them."""

    centers_BL: Ints
    contexts_BC: Ints
    weights_BLC: Floats  # of each neighbour; 0 for what is none
    negatives_BK: Ints


@dataclass(frozen=True)
class BlockGradients:
    """Of the log likelihood, a row for each centre, context and drawn word."""

    centers: Floats
    contexts: Floats
    negatives: Floats


def skipgram_gradients(inner_VD: Floats, outer_VD: Floats, blocks: CenterBlocks, negatives: float) -> BlockGradients:
    """Sum over centres and neighbours of w · (log σ(x·y) + Σ log σ(−x·n)), the centre's x inner, y and n outer."""
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
    """Sum over centres of log σ(h·y) + Σ log σ(−h·n); h is the weighed mean of the inner rows of the neighbours."""
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
    """In place; written with tanh, which neither overflows nor is slow."""
    x *= np.float32(0.5)
    np.tanh(x, out=x)
    x += np.float32(1)
    x *= np.float32(0.5)
    return x


class NegativeSampling:
    """Learns from a run of word ids; `bounds` are where its lines begin, and its end: no window goes over one."""

    def __init__(self, counts: Ints, settings: NegativeSamplingSettings) -> None:
        self.settings, self.counts = settings, np.asarray(counts, np.int64)
        if len(self.counts) < 2 or self.counts.min() < 1:
            raise InputError(f"{len(self.counts)} words were given, expected two or more, each with its count.")
        self.random = np.random.default_rng(settings.seed)
        negatives = np.cumsum(self.counts**POWER)
        self.edges = negatives / negatives[-1]
        size = (len(self.counts), settings.width)
        start = (self.random.random(size, np.float32) - np.float32(0.5)) / np.float32(settings.width)
        self.word_table, self.context_table = AdaGradTable.of(start), AdaGradTable.of(np.zeros(size, np.float32))

    def train(self, ids: Ints, bounds: Ints, *, progress: OnProgress | None = None) -> Floats:
        """Go over the text, epoch after epoch; the vectors. `progress` is told centres seen, of how many, about."""
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
        """How likely each word is kept: frequent ones less."""
        if self.settings.subsample == 0:
            return np.ones(len(self.counts))
        rarity = self.settings.subsample * self.counts.sum() / self.counts
        probability: npt.NDArray[np.float64] = np.minimum(1, np.sqrt(rarity) + rarity)
        return probability

    def batches(self, ids: Ints, bounds: Ints) -> Iterator[CenterBlocks]:
        """One epoch: the text with some frequent words left out, its blocks in any order."""
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
        """Gradients part by part, side by side; then both tables move."""
        gradients = skipgram_gradients if self.settings.kind == "skipgram" else cbow_gradients

        def compute(part: CenterBlocks) -> BlockGradients:
            return gradients(self.word_table.rows_VD, self.context_table.rows_VD, part, self.settings.negatives)

        results = list(pool.map(compute, _split(blocks, threads)))
        centres, contexts = _flat([g.centers for g in results]), _flat([g.contexts for g in results])
        negatives, negative_ids = _flat([g.negatives for g in results]), blocks.negatives_BK.reshape(-1)
        centre_ids, context_ids = blocks.centers_BL.reshape(-1), blocks.contexts_BC.reshape(-1)
        if self.settings.kind == "cbow":
            centres, contexts, centre_ids, context_ids = contexts, centres, context_ids, centre_ids
        self.word_table.ascend(centre_ids, centres, rate)
        self.context_table.ascend(
            np.concatenate([context_ids, negative_ids]), np.concatenate([contexts, negatives]), rate
        )


def band(window: int) -> Floats:
    """(L, C): how much each context counts for each centre, which stands at its own place plus `window`."""
    distance = np.abs(np.arange(LENGTH + 2 * window)[None] - np.arange(LENGTH)[:, None] - window)
    return np.where(distance == 0, 0, np.maximum(0, window + 1 - distance) / window).astype(np.float32)


def check_text(ids: Ints, bounds: Ints, words: int) -> None:
    """Our own rooms hand these over; a user's array may be anything."""
    if ids.ndim != 1 or bounds.ndim != 1 or len(bounds) < 2 or bounds[0] != 0 or bounds[-1] != len(ids):
        raise InputError(f"bounds must run from 0 to the {len(ids)} ids of the text.")
    if len(ids) == 0 or ids.min() < 0 or ids.max() >= words:
        raise InputError(f"the text is empty, or holds an id that is none of the {words} words.")


def _split(blocks: CenterBlocks, parts: int) -> list[CenterBlocks]:
    edges = np.linspace(0, len(blocks.centers_BL), min(parts, len(blocks.centers_BL)) + 1).astype(int)
    return [
        CenterBlocks(blocks.centers_BL[i:j], blocks.contexts_BC[i:j], blocks.weights_BLC[i:j], blocks.negatives_BK[i:j])
        for i, j in pairwise(edges)
    ]


def _flat(parts: list[Floats]) -> Floats:
    return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
