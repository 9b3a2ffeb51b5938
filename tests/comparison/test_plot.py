"""Pictures of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.comparison import plot
from regard.comparison.plot import draw_curves, draw_pareto, pareto_front, place_names
from regard.comparison.result import Comparison, LearningCurve, ModelResult
from regard.metrics.confidence import Score


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
