"""Whether probabilities mean what they say: reliability bins, expected calibration error, and temperature scaling.

Both follow Guo et al. 2017, "On Calibration of Modern Neural Networks" (https://arxiv.org/abs/1706.04599).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError

BINS = 15  # of equal width between 0 and 1, as in the paper
MAX_TEMPERATURE = 20.0  # and the smallest is its inverse
GRID, REFINEMENTS = 41, 3  # temperatures that are tried at once, and how often around the best
STEPS = 50  # at most, of Newton's method
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The predictions with a probability from `low` up to `high`."""

    low: float
    high: float
    rows: int
    confidence: float  # their mean probability
    accuracy: float  # the fraction of them that is correct


@dataclass(frozen=True)
class Calibration:
    """How far probabilities are from frequencies. `bins` are those that are not empty, the lowest first."""

    error: float  # expected calibration error: mean difference of confidence and accuracy over the bins, by their rows
    rows: int
    confidence: float  # mean probability
    accuracy: float  # fraction that is correct
    bins: tuple[CalibrationBin, ...]

    def json(self) -> dict[str, Any]:
        """The calibration as a plain dict."""
        return {**asdict(self), "bins": [asdict(one) for one in self.bins]}


class CalibrationCounts:
    """Counts probabilities and whether they were right, in bins of equal width: memory does not grow with the rows."""

    def __init__(self, bins: int = BINS) -> None:
        self._rows = [0] * bins
        self._sums = [0.0] * bins
        self._hits = [0] * bins

    def add(self, probability: float, correct: bool) -> None:
        """Add a prediction with its probability."""
        if not 0 <= probability <= 1.000001:
            raise InputError(f"the probability {probability} was given, expected a number from 0 to 1.")
        index = min(int(probability * len(self._rows)), len(self._rows) - 1)
        self._rows[index] += 1
        self._sums[index] += probability
        self._hits[index] += correct

    def result(self) -> Calibration | None:
        """The calibration of all predictions so far; None if there is none."""
        rows = sum(self._rows)
        if not rows:
            return None
        width = 1 / len(self._rows)
        bins = tuple(
            CalibrationBin(round(index * width, 6), round((index + 1) * width, 6), count, total / count, hits / count)
            for index, (count, total, hits) in enumerate(zip(self._rows, self._sums, self._hits, strict=True))
            if count
        )
        error = sum(one.rows * abs(one.confidence - one.accuracy) for one in bins) / rows
        return Calibration(error, rows, sum(self._sums) / rows, sum(self._hits) / rows, bins)


def fit_temperature(logits: npt.ArrayLike, targets: npt.ArrayLike) -> float:
    """The number by which to divide (rows, classes) logits so that their softmax fits these class numbers best.

    It minimizes the negative log-likelihood. The targets are smoothed as Platt (1999) does it: of n rows, the true
    class has a probability of (n + 1) / (n + 2). So a few rows that are all right do not make the model certain.
    """
    logits_NC = np.asarray(logits, np.float64)
    logits_NC = logits_NC - logits_NC.max(1, keepdims=True)
    rows, classes = logits_NC.shape
    true_N = logits_NC[np.arange(rows), np.asarray(targets, np.int64)]
    rest_N = (logits_NC.sum(1) - true_N) / max(classes - 1, 1)
    smoothing = 1 / (rows + 2)
    expected = float(np.mean((1 - smoothing) * true_N + smoothing * rest_N))

    def derivatives(inverse: float) -> tuple[float, float]:
        parts_NC = np.exp(inverse * logits_NC)
        parts_NC /= parts_NC.sum(1, keepdims=True)
        mean_N = (parts_NC * logits_NC).sum(1)
        spread = (parts_NC * np.square(logits_NC)).sum(1) - np.square(mean_N)
        return float(mean_N.mean()) - expected, float(spread.mean())

    return 1 / _root(derivatives)


def fit_sigmoid_temperature(logits: npt.ArrayLike, targets: npt.ArrayLike) -> float:
    """The same for (rows, labels) logits that are independent of each other, and their 0 or 1."""
    values = np.asarray(logits, np.float64).ravel()
    is_true = np.asarray(targets).ravel() > 0.5
    positive = int(is_true.sum())
    smoothed = np.where(is_true, (positive + 1) / (positive + 2), 1 / (len(values) - positive + 2))

    def derivatives(inverse: float) -> tuple[float, float]:
        chances = 0.5 * (1 + np.tanh(0.5 * inverse * values))
        slope = (chances - smoothed) * values
        return float(slope.mean()), float((chances * (1 - chances) * np.square(values)).mean())

    return 1 / _root(derivatives)


def fit_confidence_temperature(rows: Iterable[tuple[Sequence[float], bool]]) -> float:
    """The temperature with which the probability of an answer says best whether it is right.

    rows: for each answer, the scores of all candidates less its own, and whether it is right. A right answer may be
    none of the candidates, so this is the likelihood of being right, not that of the right candidate. Targets are
    smoothed as in `fit_temperature`.
    """
    every = list(rows)
    if not every:
        return 1.0
    gaps_NK = np.full((len(every), max(len(scores) for scores, _ in every)), -np.inf)
    for row, (scores, _) in enumerate(every):
        gaps_NK[row, : len(scores)] = scores
    right_N = np.array([right for _, right in every])
    hits = int(right_N.sum())
    target_N = np.where(right_N, (hits + 1) / (hits + 2), 1 / (len(every) - hits + 2))

    def loss(temperature: float) -> float:
        log_N = -np.logaddexp.reduce(gaps_NK / temperature, axis=1)
        rest_N = np.log(np.maximum(-np.expm1(log_N), 1e-12))
        return -float((target_N * log_N + (1 - target_N) * rest_N).mean())

    low, high = 1 / MAX_TEMPERATURE, MAX_TEMPERATURE
    best = 1.0
    for _ in range(REFINEMENTS):
        grid = np.geomspace(low, high, GRID)
        best = float(grid[int(np.argmin([loss(one) for one in grid]))])
        step = (high / low) ** (1 / (GRID - 1))
        low, high = max(best / step, 1 / MAX_TEMPERATURE), min(best * step, MAX_TEMPERATURE)
    return best


def check_temperature(temperature: float) -> None:
    """Raise InputError for a number that logits cannot be divided by."""
    if not 0 < temperature < math.inf:
        raise InputError(f"the temperature is {temperature}, expected a number above 0.")


def _root(derivatives: Callable[[float], tuple[float, float]]) -> float:
    """Where the first derivative of a convex function is 0, between the limits of a temperature."""
    low, high, at = 1 / MAX_TEMPERATURE, MAX_TEMPERATURE, 1.0
    for _ in range(STEPS):
        slope, curvature = derivatives(at)
        if slope == 0:
            return at
        low, high = (low, at) if slope > 0 else (at, high)
        newer = at - slope / curvature if curvature > 0 else low
        if not low < newer < high:
            newer = (low * high) ** 0.5
        if abs(newer - at) < 1e-7 * at:
            return newer
        at = newer
    return at


def softmax(logits: Sequence[float]) -> list[float]:
    """Probabilities of a few classes; in plain Python, since the calls of a library take longer than the arithmetic."""
    highest = max(logits)
    exponentials = [math.exp(logit - highest) for logit in logits]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def sigmoid(logit: float) -> float:
    """The probability of a logit, without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    exponential = math.exp(logit)
    return exponential / (1 + exponential)
