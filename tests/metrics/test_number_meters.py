"""Meters of numbers are those of scipy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]
from sklearn import metrics as oracle

from regard.metrics.meter import (
    NumberMeter,
)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_numbers(shift: float) -> None:
    random = np.random.default_rng(2)
    gold = random.normal(size=2500)
    predicted = gold + 0.5 * random.normal(size=2500)
    meter = NumberMeter()
    meter.add_many(predicted[:2000] + shift, gold[:2000] + shift)
    for ours, theirs in zip(predicted[2000:], gold[2000:], strict=True):
        meter.add(ours + shift, theirs + shift)
    result = meter.scores()
    assert list(result) == ["pearson", "spearman", "mse", "mae", "r2"]
    theirs = stats.pearsonr(predicted, gold)
    expected = theirs.confidence_interval()
    assert (result["pearson"].value, result["pearson"].low, result["pearson"].high) == pytest.approx(
        (theirs[0], expected.low, expected.high), abs=2e-3
    )
    assert result["spearman"].value == pytest.approx(stats.spearmanr(predicted, gold)[0], abs=1e-6)
    assert result["mse"].value == pytest.approx(oracle.mean_squared_error(gold, predicted))
    assert result["r2"].value == pytest.approx(oracle.r2_score(gold, predicted))
    half = 1.96 * np.square(predicted - gold).std() / 50
    assert result["mse"].high - result["mse"].value == pytest.approx(half, rel=0.15)


def test_constant_numbers_have_no_correlation() -> None:
    meter = NumberMeter()
    meter.add_many([0.1] * 5, [0.1] * 5)
    assert [score.value for score in meter.scores().values()] == [0, 0, 0, 0, 1]
