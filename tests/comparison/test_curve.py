"""Learning curves: the power law is recovered, and its interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest

from regard.comparison.curve import fit, learning_curve
from regard.metrics.confidence import with_ones
from regard.metrics.paired.rows import RowScore, RowTable

ROWS = np.array([100.0, 200.0, 400.0, 800.0, 1600.0])


def test_a_power_law_is_recovered() -> None:
    scores = 0.95 - 2.0 * ROWS**-0.5
    law = fit(ROWS, scores[:, None], np.full(5, 1e-4), upper=1.0)
    assert law.limit[0] == pytest.approx(0.95, abs=0.005)
    assert law.at(np.array([6400.0]))[0, 0] == pytest.approx(0.95 - 2.0 * 6400**-0.5, abs=0.003)


def test_more_rows_never_harm_and_the_limit_is_kept() -> None:
    falling = fit(ROWS, np.array([0.9, 0.8, 0.7, 0.6, 0.5])[:, None], np.full(5, 1e-4))
    assert falling.drop[0] == 0
    steep = fit(ROWS, np.array([0.5, 0.62, 0.74, 0.86, 0.98])[:, None], np.full(5, 1e-4), upper=1.0)
    assert steep.limit[0] <= 1.0


def test_points_count_by_the_inverse_of_their_variance() -> None:
    scores = 0.95 - 2.0 * ROWS**-0.5
    wrong = scores.copy()
    wrong[0] += 0.1
    law = fit(ROWS, wrong[:, None], np.array([1.0, 1e-5, 1e-5, 1e-5, 1e-5]), upper=1.0)
    assert law.limit[0] == pytest.approx(0.95, abs=0.01)


def test_the_interval_of_a_prediction_holds_the_truth() -> None:
    generator = np.random.default_rng(0)
    inside = []
    for _ in range(60):
        chances = 0.92 - 1.5 * ROWS**-0.5
        difficulty = generator.random(800)
        tables = [
            RowTable(with_ones((difficulty < chance).astype(float)), {"accuracy": RowScore((0, 1))})
            for chance in chances
        ]
        curve = learning_curve("m", ROWS.astype(int).tolist(), tables, "accuracy")
        score = curve.predicted[3200]
        inside.append(score.low <= 0.92 - 1.5 * 3200**-0.5 <= score.high)
    assert np.mean(inside) >= 0.85
    assert curve.sentence.startswith("m scores ")
    assert list(curve.predicted) == [3200, 6400]


def test_scores_that_follow_no_curve_predict_nothing() -> None:
    """A network that learns nothing from small parts: the curve would promise less than what was measured."""
    places = np.arange(300) / 300
    tables = [
        RowTable(with_ones((places < chance).astype(float)), {"accuracy": RowScore((0, 1))})
        for chance in (0.24, 0.24, 0.24, 0.24, 0.51)
    ]
    curve = learning_curve("m", ROWS.astype(int).tolist(), tables, "accuracy")
    assert curve.predicted == {}
    assert curve.sentence.startswith("m scores 51.0; its scores do not follow a learning curve")
