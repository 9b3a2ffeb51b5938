"""Likely label errors: rows whose label a model contradicts with confidence.

This is confident learning (Northcutt et al. 2021, https://arxiv.org/abs/1911.00068). The probabilities must come from a
model that was not trained on these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.errors import InputError


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Row numbers, the most likely error first. The first `flagged` of them are likely to be wrong."""

    order: npt.NDArray[np.int64]
    flagged: int
    suggested: npt.NDArray[np.int64]  # the class that the model prefers, by row number
    margin: npt.NDArray[np.float64]  # probability of the label less that of the suggested class, by row number


def rank_label_errors(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> LabelErrors:
    """Order rows by how likely their labels are wrong, from (rows, classes) probabilities and class numbers.

    1. The threshold of a class is the mean probability of that class over the rows that have it as their label.
    2. A row is flagged if another class reaches its threshold, and is more probable than the label itself.
    3. Flagged rows come first; within both groups the order is that of the probability of the label less that of the
       most probable other class.
    """
    chances, numbers = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if chances.ndim != 2 or len(chances) != len(numbers):
        raise InputError(f"probabilities of shape {chances.shape} for {len(numbers)} labels; expected (rows, classes).")
    rows, classes = chances.shape
    if not rows or classes < 2:
        return LabelErrors(np.arange(rows), 0, numbers, np.zeros(rows))
    own = chances[np.arange(rows), numbers]
    counts = np.bincount(numbers, minlength=classes)
    thresholds = np.where(counts > 0, np.bincount(numbers, own, minlength=classes) / np.maximum(counts, 1), 2.0)
    others = chances.copy()
    others[np.arange(rows), numbers] = -1.0
    suggested = others.argmax(1)
    margin = own - others.max(1)
    flags = (margin < 0) & (others >= thresholds).any(1)
    order = np.lexsort((margin, ~flags))
    return LabelErrors(order, int(flags.sum()), suggested, margin)
