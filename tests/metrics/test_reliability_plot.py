"""The reliability diagram as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.metrics.calibration import CalibrationCounts
from regard.metrics.reliability_plot import save_reliability


@pytest.mark.parametrize(("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_diagram_is_drawn_in_every_format(format: str, start: bytes, tmp_path: Path) -> None:
    counts = CalibrationCounts()
    for number in range(100):
        counts.add(number / 100, number % 3 > 0)
    calibration = counts.result()
    assert calibration is not None
    save_reliability(calibration, tmp_path / "plot", format=format)
    assert (tmp_path / "plot").read_bytes().startswith(start)
