"""Learning curves and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.comparison import plot
from regard.comparison.curve import fit, learning_curve
from regard.comparison.plot import draw_curves, draw_pareto, pareto_front, place_names
from regard.comparison.result import Comparison, LearningCurve, ModelResult
from regard.metrics.confidence import Score, with_ones
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


def model(name: str, value: float, latency: float, error: str | None = None) -> ModelResult:
    return ModelResult(name, "loaded", {"f1": Score(value, value - 0.1, value + 0.1)}, latency_ms=latency, error=error)


MODELS = (model("good", 0.9, 10), model("fast", 0.7, 1), model("bad", 0.6, 5), model("none", 0, 0, error="failed"))


def comparison(**more: object) -> Comparison:
    values = {"task": "tag", "metric": "f1", "rows": 50, "train_rows": 100, "dev_rows": 10, "models": MODELS}
    rest = {"pairs": (), "verdict": "", "best": "good", "cheapest": "fast"}
    return Comparison(**{**values, **rest, **more})  # type: ignore[arg-type]


def test_the_front_has_the_models_that_no_other_beats_in_both() -> None:
    assert [one.name for one in pareto_front(MODELS[:3], "f1")] == ["good", "fast"]
    assert [one.name for one in pareto_front(MODELS[:3], "f1", higher=False)] == ["fast", "bad"]


def test_pictures_are_written(tmp_path: Path) -> None:
    draw_pareto(comparison(), tmp_path / "pareto.png")
    assert (tmp_path / "pareto.png").read_bytes().startswith(b"\x89PNG")
    score = Score(0.5, 0.4, 0.6)
    curve = LearningCurve("m", (10, 20), (score, score), {40: score, 80: score}, score, "")
    draw_curves(comparison(curves=(curve,)), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_names_stay_inside_of_the_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: dict[str, Any] = {}

    def place(axis: Any, names: Any) -> None:
        place_names(axis, names)
        boxes.update({name.get_text(): name.get_window_extent() for name in names})
        boxes["axes"] = axis.get_window_extent()
        boxes["point"] = axis.transData.transform(names[0].xy)

    monkeypatch.setattr(plot, "place_names", place)
    slowest = "a-model-with-a-long-name"
    models = (model(slowest, 0.9, 100), model("other", 0.89, 95), model("fast", 0.7, 1), model("middle", 0.8, 10))
    draw_pareto(comparison(models=models), tmp_path / "pareto.png")
    axes, right = boxes.pop("axes"), boxes.pop("point")[0]
    assert boxes[slowest].x1 < right  # left of its point
    for name, box in boxes.items():
        assert axes.x0 <= box.x0 < box.x1 <= axes.x1, name
        assert not box.count_overlaps([other for key, other in boxes.items() if key != name])


def test_nothing_is_drawn_without_results(tmp_path: Path) -> None:
    draw_pareto(comparison(models=MODELS[3:]), tmp_path / "pareto.png")
    assert not (tmp_path / "pareto.png").exists()
