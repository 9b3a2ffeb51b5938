"""The calibration of a model as a picture: how often predictions are right, by their probability."""

from __future__ import annotations

from pathlib import Path

from regard.metrics.calibration import Calibration
from regard.metrics.report_plot import DARK, PALE, RIGHT, WRONG


def save_reliability(calibration: Calibration, path: Path, *, format: str = "png") -> None:
    """Draw a reliability diagram: accuracy over confidence, and below it the number of predictions.

    Red is the gap between both: none where probabilities are right as often as they say.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 5.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    left = [one.low for one in calibration.bins]
    width = [one.high - one.low for one in calibration.bins]
    right = [one.accuracy for one in calibration.bins]
    gaps = [one.confidence - one.accuracy for one in calibration.bins]
    upper.bar(left, right, width, align="edge", color=RIGHT, edgecolor="white", label="right")
    upper.bar(left, gaps, width, bottom=right, align="edge", color=WRONG, alpha=0.45, edgecolor=WRONG, label="gap")
    upper.plot((0, 1), (0, 1), "--", color=PALE)
    upper.set(ylabel="fraction that is right", ylim=(0, 1), xlim=(0, 1))
    upper.legend(frameon=False, loc="upper left")
    title = f"calibration error {calibration.error:.3f}, {calibration.rows:,} predictions"
    upper.set_title(title, fontsize=11, color=DARK, loc="left")
    lower.bar(left, [one.rows for one in calibration.bins], width, align="edge", color=PALE, edgecolor="white")
    lower.set(xlabel="probability", ylabel="predictions")
    for axis in (upper, lower):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, format=format)
