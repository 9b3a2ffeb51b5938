"""Epochs in which every label comes equally often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.examples import Examples, Inputs
from regard.data.batching.packing import Ints
from regard.errors import InputError, setting


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Sequences of some examples, some more than once."""

    examples: Examples
    chosen: Ints

    @property
    def lengths(self) -> npt.NDArray[Any]:
        return self.examples.lengths[self.chosen]

    def take(self, rows: Ints) -> Inputs:
        return self.examples.take(self.chosen[rows])


@dataclass(frozen=True, eq=False)
class BalancedSource:
    """As many sequences an epoch as there are, each drawn by a chance that makes the labels equal."""

    examples: Examples
    chances: npt.NDArray[np.float64]
    seed: int

    def epoch(self, number: int) -> SampledRows:
        luck = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        chosen = luck.choice(len(self.examples), size=len(self.examples), p=self.chances)
        return SampledRows(self.examples, chosen.astype(np.int64))


def balanced_source(examples: Examples, seed: int) -> BalancedSource:
    """Sampling by label; for tasks with one label a sequence."""
    labels = examples.by_sequence.get("label")
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{setting('class_balance', 'sampling')} needs one label a text; use weights, or none.")
    counts = np.bincount(labels)
    chances = 1.0 / counts[labels]
    return BalancedSource(examples, chances / chances.sum(), seed)
