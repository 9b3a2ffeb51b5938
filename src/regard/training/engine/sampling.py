"""Class-balanced sampling: epochs in which every label is equally frequent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.data.batching.examples import Examples, Inputs
from regard.errors import InputError, setting
from regard.text.flat_tokens import Ints


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Some of the sequences, by their numbers; a number may be repeated."""

    examples: Examples
    rows: Ints

    @property
    def lengths(self) -> npt.NDArray[Any]:
        return self.examples.lengths[self.rows]

    def take(self, rows: Ints) -> Inputs:
        return self.examples.take(self.rows[rows])


@dataclass(frozen=True, eq=False)
class BalancedSource:
    """Each epoch samples as many sequences as there are, with probabilities that make all labels equally frequent."""

    examples: Examples
    probabilities: npt.NDArray[np.float64]
    seed: int

    def epoch(self, number: int) -> SampledRows:
        generator = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        rows = generator.choice(len(self.examples), size=len(self.examples), p=self.probabilities)
        return SampledRows(self.examples, rows.astype(np.int64))


def balanced_source(examples: Examples, seed: int) -> BalancedSource:
    """Sample by label; for tasks with one label per sequence."""
    labels = examples.by_sequence.get("label")
    if labels is None or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{setting('class_balance', 'sampling')} needs one label per text; use weights, or none.")
    counts = np.bincount(labels)
    weights = 1.0 / counts[labels]
    return BalancedSource(examples, weights / weights.sum(), seed)
