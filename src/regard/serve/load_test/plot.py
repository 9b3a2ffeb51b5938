"""Latency and throughput over the rate of requests, as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from regard.data.atomic import atomic_path
from regard.serve.load_test.load import LoadResult


def plot_load(results: Sequence[LoadResult], path: Path, *, goal_ms: float) -> None:
    """Write a PNG file."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    rates = [one.rate for one in results]
    for name in ("p50_ms", "p95_ms", "p99_ms"):
        values = [value if math.isfinite(value := getattr(one, name)) else math.nan for one in results]
        left.plot(rates, values, marker="o", markersize=3, label=name.removesuffix("_ms"))
    left.axhline(goal_ms, color="gray", linestyle=":", label=f"goal {goal_ms:g} ms")
    left.set(xlabel="requests per second", ylabel="milliseconds", xscale="log", yscale="log")
    left.legend()
    right.plot(rates, [one.throughput for one in results], marker="o", markersize=3, label="answered")
    right.plot(rates, rates, color="gray", linestyle=":", label="sent")
    right.set(xlabel="requests per second", ylabel="answers per second", xscale="log", yscale="log")
    right.legend()
    for axis in (left.xaxis, left.yaxis, right.xaxis, right.yaxis):
        axis.set_major_formatter(LogFormatter())  # 20 instead of 2 times a power of ten
        axis.set_minor_formatter(LogFormatter())
    with atomic_path(path) as part:
        figure.savefig(part, dpi=150, format="png")
