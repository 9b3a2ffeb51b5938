"""Plots as inline SVG."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from regard.metrics.calibration import CalibrationCounts
from regard.report.plots import (
    CHARACTER,
    WIDTH,
    Line,
    Scale,
    coverage_plot,
    finite,
    interval_bar,
    label_places,
    line_plot,
    number,
    reliability,
    scatter,
    thinned,
    ticks,
)
from regard.report.row_facts import CoveragePoint


def test_a_scale_maps_ends_to_ends() -> None:
    scale = Scale(10, 20, 0, 100)
    assert [scale(value) for value in (10, 15, 20)] == [0, 50, 100]
    assert Scale(3, 3, 5, 9)(3) == 5


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert ticks(0.13, 0.37) == [0.15, 0.2, 0.25, 0.3, 0.35]
    assert ticks(0, 900) == [0, 200, 400, 600, 800]
    assert ticks(2, 2) == [2]
    assert [number(value) for value in (0.25, 1500, 25_000, 3_000_000)] == ["0.25", "1,500", "25k", "3M"]


def test_a_long_line_is_thinned_to_means() -> None:
    points = [(float(step), float(step % 2)) for step in range(4000)]
    short = thinned(points)
    assert len(short) <= 401
    assert short[-1] == (3999, 0.5)
    assert thinned(points[:5]) == points[:5]


@pytest.mark.parametrize("values", [[1.0, 0.5, 0.25], [2.0], [0.0, 0.0], [-3.0, 4.0], [math.nan, 1.0], [None, 2.0]])
def test_line_plots_are_well_formed(values: list[float]) -> None:
    lines = [Line("a <line>", list(enumerate(values)), dots=True)]
    root = ET.fromstring(line_plot(lines, x_name="step", label='"loss" & more', mark=(0.0, "best <1>")))
    assert root.get("aria-label") == '"loss" & more'
    assert "NaN" not in ET.tostring(root, "unicode")
    assert "nan" not in ET.tostring(root, "unicode")


def test_a_plot_without_points_is_empty() -> None:
    assert line_plot([Line("a", [(0.0, math.inf)])], x_name="step", label="x") == ""
    assert finite([(0, math.nan), (1, 2.0)]) == [(1, 2.0)]


def test_other_plots_are_well_formed() -> None:
    counts = CalibrationCounts()
    for chance in (0.2, 0.6, 0.61, 0.99):
        counts.add(chance, chance > 0.5)
    calibration = counts.result()
    assert calibration is not None
    points = [CoveragePoint(0.0, 1.0, 0.5), CoveragePoint(0.9, 0.3, 0.9), CoveragePoint(0.99, 0.0, None)]
    plots = [
        reliability(calibration, calibration, label="r"),
        reliability(calibration, None, label="r"),
        coverage_plot(points, label="c"),
        scatter([(1.0, 2.0), (3.0, 2.5)], label="s"),
        scatter([(1.0, 1.0)], label="s"),
        interval_bar(0.5, 0.4, 0.6, scale=(0.0, 1.0)),
    ]
    for plot in plots:
        assert ET.fromstring(plot).tag == "svg"


def test_names_of_close_points_do_not_cover_each_other() -> None:
    points = [(190.0, 60.0), (260.0, 60.0), (120.0, 80.0), (262.0, 66.0)]
    names = ["ngram", "minilm", "static", "probe"]
    places = label_places(points, names)
    boxes = []
    for place, name in zip(places, names, strict=True):
        width = len(name) * CHARACTER
        left = place.x - {"start": 0.0, "middle": width / 2, "end": width}[place.anchor]
        boxes.append((left, place.y - 10, left + width, place.y + 1))
    for position, one in enumerate(boxes):
        for other in boxes[position + 1 :]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    assert label_places([(WIDTH - 2.0, 50.0)], ["at the edge"])[0].anchor == "end"
    name = "ends after the axis"  # but inside of the picture
    point = (WIDTH - len(name) * CHARACTER - 12.0, 50.0)
    assert label_places([point], [name])[0].anchor == "end"
    assert label_places([(point[0] - 12, 50.0)], [name])[0].anchor == "start"
