"""Pictures of reports: drawn for every kind of matrix, refused where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.errors import InputError
from regard.metrics.calibration import CalibrationCounts
from regard.metrics.meter import EntityMeter, LabelMeter, MultiLabelMeter, NumberMeter
from regard.metrics.reliability_plot import save_reliability
from regard.metrics.report import ClassificationReport, report_of
from regard.metrics.report_plot import plot_format, save_report


def label_report(classes: int) -> ClassificationReport:
    draw = np.random.default_rng(0)
    meter = LabelMeter([f"class ${number} with a long, long name" for number in range(classes)])
    meter.add_many(draw.integers(0, classes, 500), draw.integers(0, classes, 500))
    return meter.report()


def multi_report() -> ClassificationReport:
    draw = np.random.default_rng(0)
    meter = MultiLabelMeter(["billing", "login", "<odd & name>"])
    meter.add_many(draw.random((50, 3)) < 0.5, draw.random((50, 3)) < 0.5)
    return meter.report()


def entity_report() -> ClassificationReport:
    meter = EntityMeter()
    meter.add(["B-PER", "O", "B-LOC"], ["B-PER", "O", "O"])
    return meter.report()


@pytest.mark.parametrize(
    "report", [label_report(2), label_report(90), multi_report(), entity_report()], ids=["2", "90", "multi", "entity"]
)
def test_every_kind_is_plotted(report: ClassificationReport, tmp_path: Path) -> None:
    save_report(report, tmp_path / "report.part", rows=500)
    assert (tmp_path / "report.part").read_bytes().startswith(b"\x89PNG")
    save_report(report, tmp_path / "report.svg", format="svg", rows=500)
    assert "<svg" in (tmp_path / "report.svg").read_text()


def test_letters_that_the_font_lacks_are_reported_once(tmp_path: Path) -> None:
    meter = LabelMeter(["好", "坏"])
    meter.add("好", "坏")
    with pytest.warns(UserWarning, match="drawn as boxes") as caught:
        save_report(meter.report(), tmp_path / "report.png", rows=1)
    assert len(caught) == 1


def test_numbers_have_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no confusion matrix to draw"):
        save_report(report_of(NumberMeter()), tmp_path / "report.png", rows=1)


def test_only_names_of_pictures() -> None:
    assert plot_format(Path("a.PNG")) == "png"
    with pytest.raises(InputError, match=r"report\.txt does not end in \.png, \.svg or \.pdf"):
        plot_format(Path("report.txt"))


@pytest.mark.parametrize(("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_diagram_is_drawn_in_every_format(format: str, start: bytes, tmp_path: Path) -> None:
    counts = CalibrationCounts()
    for number in range(100):
        counts.add(number / 100, number % 3 > 0)
    calibration = counts.result()
    assert calibration is not None
    save_reliability(calibration, tmp_path / "plot", format=format)
    assert (tmp_path / "plot").read_bytes().startswith(start)
