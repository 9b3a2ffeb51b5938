"""Learning curves: scores on growing parts of the training rows, and what more rows would bring.

The curve is score = a - b * rows ** -c (Figueroa et al. 2012, "Predicting sample size required for classification
performance"), fitted by least squares with weights: a point counts by the inverse of its variance. For every rate c of
a grid, a and b have a closed form. The interval comes from fitting the curve to resampled test rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.comparison.result import LearningCurve
from regard.comparison.words import highest, number
from regard.metrics.confidence import Score
from regard.metrics.paired.resample import bootstrap_scores, expanded_interval
from regard.metrics.paired.rows import RowTable

FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
RATES = np.geomspace(0.05, 2.0, 40)  # of the power law
MORE = (2, 4)  # times as many rows, for which the score is predicted
RESAMPLES = 1000
MIN_POINTS = 3
Numbers = NDArray[np.float64]


def learning_curve(
    name: str,
    rows: Sequence[int],
    tables: Sequence[RowTable],
    metric: str,
    *,
    groups: NDArray[np.intp] | None = None,
    seed: int = 0,
) -> LearningCurve:
    """The curve of one model: `tables` are its test rows after training on `rows` rows, in the same order."""
    sampled = bootstrap_scores(tables, metric, groups=groups, resamples=RESAMPLES, seed=seed)
    units = tables[0].rows if groups is None else int(groups.max()) + 1
    values = np.array([table.value(metric) for table in tables])
    scores = tuple(
        expanded_interval(float(value), replicates, units) for value, replicates in zip(values, sampled, strict=True)
    )
    sign = 1.0 if tables[0].score(metric).higher_is_better else -1.0
    upper = highest(metric)
    counts = np.array(rows, np.float64)
    variance = sampled.var(axis=1) + 1e-8
    best = fit(counts, sign * values[:, None], variance, upper=upper)
    every = fit(counts, sign * sampled, variance, upper=upper)
    # A difference from the curve is more than the choice of test rows: seeds and parts vary too.
    spread = max(float(np.sqrt(np.mean(np.square(sign * values - best.at(counts)[:, 0])))), 0.0)
    noise = np.random.default_rng(seed).normal(0, spread, RESAMPLES)
    predicted = {}
    fits = scores[-1].low <= float(sign * best.at(counts[-1:])[0, 0]) <= scores[-1].high
    for times in MORE if fits else ():
        more = times * rows[-1]
        at = np.array([float(more)])
        sampled_at = np.minimum(every.at(at)[0] + noise, np.inf if upper is None else upper)
        predicted[more] = expanded_interval(float(sign * best.at(at)[0, 0]), sign * sampled_at, units)
    limit = expanded_interval(float(sign * best.limit[0]), sign * every.limit, units)
    return LearningCurve(name, tuple(rows), scores, predicted, limit, _sentence(name, metric, scores, predicted))


def _sentence(name: str, metric: str, scores: Sequence[Score], predicted: dict[int, Score]) -> str:
    if not predicted:
        measured = number(metric, scores[-1].value)
        return (
            f"{name} scores {measured}; its scores do not follow a learning curve, so none is predicted for more rows"
        )
    rows, score = next(iter(predicted.items()))
    interval = f"{number(metric, score.low)} to {number(metric, score.high)}"
    now, then = number(metric, scores[-1].value), number(metric, score.value)
    if now == then:
        return f"{name} scores {now}; with {rows:,} rows about the same ({interval}) is expected"
    start = f"{name} scores {now}; with {rows:,} rows about {then}"
    gain = abs(score.value - scores[-1].value)
    half = (scores[-1].high - scores[-1].low) / 2
    close = "; these test rows could hardly show such a difference" if gain < half else ""
    return f"{start} ({interval}) is expected{close}"


class PowerLaw:
    """score = limit - drop * rows ** -rate, one for each column."""

    def __init__(self, limit: Numbers, drop: Numbers, rate: Numbers) -> None:
        self.limit, self.drop, self.rate = limit, drop, rate

    def at(self, rows: Numbers) -> Numbers:
        """The scores (rows, columns)."""
        result: Numbers = self.limit - self.drop * rows[:, None] ** -self.rate
        return result


def fit(rows: Numbers, scores: Numbers, variance: Numbers, *, upper: float | None = None) -> PowerLaw:
    """Fit a power law to each column of the scores (rows, columns) with weights 1 / variance.

    The drop is at least 0 (more rows never harm), and the limit at most `upper`.
    """
    weights = 1 / variance
    weights = weights / weights.sum()
    mean_score = weights @ scores
    best_error = np.full(scores.shape[1], np.inf)
    limit, drop, rate = (np.zeros(scores.shape[1]) for _ in range(3))
    for one in RATES:
        x = rows**-one
        centered = x - weights @ x
        slope = -(weights * centered) @ scores / max(float(weights @ centered**2), 1e-300)
        slope = np.maximum(slope, 0)
        intercept = mean_score + slope * float(weights @ x)
        if upper is not None:
            over = intercept > upper
            through = (weights * x) @ (upper - scores) / float(weights @ x**2)
            slope = np.where(over, np.maximum(through, 0), slope)
            intercept = np.where(over, upper, intercept)
        errors = weights @ np.square(scores - (intercept - slope * x[:, None]))
        better = errors < best_error - 1e-15
        best_error = np.where(better, errors, best_error)
        limit = np.where(better, intercept, limit)
        drop = np.where(better, slope, drop)
        rate = np.where(better, one, rate)
    return PowerLaw(limit, drop, rate)
