"""Plots of a report as inline SVG, without scripts or fonts. Colors are those of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from regard.data.check.plots import escaped
from regard.metrics.calibration import Calibration
from regard.report.row_facts import CoveragePoint

# Sizes in pixels.
WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 34
RADIUS = 5  # of the dot of a model
CHARACTER = 8  # width of a character of a bold name
MAX_POINTS = 400  # of a line; of more, means over neighbors are drawn

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Scale:
    """Numbers to pixels, along one axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * (value - self.low) / ((self.high - self.low) or 1)


class LogScale(Scale):
    """Positive numbers to pixels, along one logarithmic axis."""

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / (math.log(self.high / self.low) or 1)
        return self.start + (self.end - self.start) * part


@dataclass(frozen=True)
class Line:
    """A line of a plot; `dots` marks each of its points.

    band: an interval (x, low, high) around points of the line.
    """

    name: str
    points: Points
    color: int = 0
    dots: bool = False
    dashed: bool = False
    band: Sequence[tuple[float, float, float]] = ()


def line_plot(
    lines: Sequence[Line], *, x_name: str, label: str, mark: tuple[float, str] | None = None, log: bool = False
) -> str:
    """Lines over steps. `mark` is a position on the horizontal axis with its text; `log`: that axis is logarithmic."""
    known = [replace(line, points=finite(line.points)) for line in lines]
    known = [line for line in known if line.points]
    if not known:
        return ""
    xs = [x for line in known for x, _ in line.points]
    ys = [y for line in known for _, y in line.points]
    ys += [y for line in known for _, *ends in line.band for y in ends]
    pad = (max(ys) - min(ys)) * 0.08 or abs(ys[0]) * 0.05 or 0.5
    x = (LogScale if log else Scale)(min(xs) if log else min(0, *xs), max(xs), LEFT, WIDTH - RIGHT)
    y = Scale(max(min(ys) - pad, 0) if min(ys) >= 0 else min(ys) - pad, max(ys) + pad, HEIGHT - BOTTOM, TOP)
    parts = axes(x, y, x_name=x_name, x_ticks=log_ticks(x.low, x.high) if log else ())
    if mark is not None:
        parts += _vertical(x(mark[0]), mark[1])
    for line in known:
        parts += [_band(line, x, y)] if line.band else []
        parts.append(_path(thinned(line.points), x, y, line.color, " dashed" if line.dashed else ""))
        if line.dots:
            parts += [_dot(x(a), y(b), line.color, f"{line.name} {b:.4g} at {a:,.6g}") for a, b in line.points]
    return svg(parts, label)


def finite(points: Points) -> list[tuple[float, float]]:
    """Without points whose number is missing or not finite, such as the loss of a skipped step."""
    return [(x, y) for x, y in points if y is not None and math.isfinite(y)]


def thinned(points: Points, count: int = MAX_POINTS) -> list[tuple[float, float]]:
    """At most `count` points: means over neighbors, the last point kept as it is."""
    if len(points) <= count:
        return list(points)
    size = -(-len(points) // count)
    blocks = [points[start : start + size] for start in range(0, len(points), size)]
    means = [(block[-1][0], sum(y for _, y in block) / len(block)) for block in blocks]
    return [points[0], *means]


def reliability(calibration: Calibration, before: Calibration | None, *, label: str) -> str:
    """Fraction that is right over probability, both equal on the diagonal. The size of a dot is that of its bin."""
    x, y = Scale(0, 1, LEFT, WIDTH - RIGHT), Scale(0, 1, HEIGHT - BOTTOM, TOP)
    parts = axes(x, y, x_name="probability", y_ticks=(0, 0.25, 0.5, 0.75, 1), x_ticks=(0, 0.25, 0.5, 0.75, 1))
    parts.append(f'<line class="diagonal" x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}"/>')
    both = [(before, 1, " pale"), (calibration, 0, "")]
    for one, color, style in both:
        if one is None:
            continue
        points = [(bin.confidence, bin.accuracy) for bin in one.bins]
        parts.append(_path(points, x, y, color, style))
        for bin in one.bins:
            radius = 2.5 + 8 * math.sqrt(bin.rows / one.rows)
            title = f"probability {bin.confidence:.2f}, right {bin.accuracy:.2f}: {bin.rows:,} predictions"
            parts.append(_dot(x(bin.confidence), y(bin.accuracy), color, title, radius, style))
    return svg(parts, label)


def coverage_plot(points: Sequence[CoveragePoint], *, label: str) -> str:
    """Accuracy of the answered rows over the fraction that is answered."""
    known = [(point.coverage, point.accuracy, point.below) for point in points if point.accuracy is not None]
    low = min(accuracy for _, accuracy, _ in known)
    x = Scale(0, 1, LEFT, WIDTH - RIGHT)
    y = Scale(max(0, math.floor(low * 20 - 0.5) / 20), 1, HEIGHT - BOTTOM, TOP)
    parts = axes(x, y, x_name="fraction of rows answered", x_ticks=(0, 0.25, 0.5, 0.75, 1))
    parts.append(_path([(a, b) for a, b, _ in known], x, y, 0))
    for coverage, accuracy, below in known:
        title = f"from confidence {below:g}: {coverage:.1%} answered, {accuracy:.1%} right"
        parts.append(_dot(x(coverage), y(accuracy), 0, title, 4))
    return svg(parts, label)


def scatter(points: Points, *, label: str) -> str:
    """Predicted over true numbers, on the same scale."""
    known = finite(points)[:2000]
    values = [value for point in known for value in point]
    low, high = min(values), max(values)
    pad = (high - low) * 0.04 or 1
    x, y = Scale(low - pad, high + pad, LEFT, WIDTH - RIGHT), Scale(low - pad, high + pad, HEIGHT - BOTTOM, TOP)
    parts = axes(x, y, x_name="true")
    ends = (low - pad, high + pad)
    parts.append(
        f'<line class="diagonal" x1="{x(ends[0]):.1f}" y1="{y(ends[0]):.1f}" '
        f'x2="{x(ends[1]):.1f}" y2="{y(ends[1]):.1f}"/>'
    )
    parts += [_dot(x(a), y(b), 0, f"true {a:.4g}, predicted {b:.4g}", 2.6, " pale") for a, b in known]
    return svg(parts, label)


class LabelPlace(NamedTuple):
    """Where a text begins, is centered or ends ("start", "middle", "end"), and its baseline."""

    x: float
    y: float
    anchor: str


def label_places(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[LabelPlace]:
    """A place for each name beside its point: inside of the axes if it fits there, and over no other name or point."""
    taken = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    places = []
    for (x, y), name in zip(points, names, strict=True):
        width = len(name) * CHARACTER
        candidates = [
            (LabelPlace(x + 9, y + 4, "start"), (x + 9, y - 7, x + 9 + width, y + 5)),
            (LabelPlace(x - 9, y + 4, "end"), (x - 9 - width, y - 7, x - 9, y + 5)),
            (LabelPlace(x, y - 10, "middle"), (x - width / 2, y - 21, x + width / 2, y - 9)),
            (LabelPlace(x, y + 19, "middle"), (x - width / 2, y + 8, x + width / 2, y + 20)),
        ]
        fits = [one for one in candidates if one[1][0] >= LEFT and one[1][2] <= WIDTH - RIGHT]
        fits = fits or [one for one in candidates if one[1][0] >= 0 and one[1][2] <= WIDTH]
        free = [one for one in fits if not any(_overlap(one[1], box) for box in taken)]
        place, box = (free or fits or candidates)[0]
        places.append(place)
        taken.append(box)
    return places


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    """Whether two boxes (left, top, right, bottom) overlap."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def interval_bar(value: float, low: float, high: float, *, scale: tuple[float, float]) -> str:
    """A score with its interval as a small bar, on a scale that the rows of a table share."""
    x = Scale(*scale, 6, 194)
    return (
        '<svg viewBox="0 0 200 22" preserveAspectRatio="none" aria-hidden="true" class="c0">'
        '<rect x="0" y="9" width="200" height="4" rx="2" fill="var(--track)"/>'
        f'<rect class="bar pale" x="{x(low):.1f}" y="7" width="{max(x(high) - x(low), 2):.1f}" height="8" rx="4"/>'
        f'<rect class="bar" x="{x(value) - 2:.1f}" y="4" width="4" height="14" rx="2"/></svg>'
    )


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between both ends: powers of ten, also 2 and 5 times these if there are few."""
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    factors = (1,) if high / low > 100 else (1, 2, 5)
    every = [factor * 10.0**power for power in powers for factor in factors]
    return [mark for mark in every if low <= mark <= high]


def axes(
    x: Scale,
    y: Scale,
    *,
    x_name: str,
    x_ticks: Sequence[float] = (),
    y_ticks: Sequence[float] = (),
    x_label: Callable[[float], str] | None = None,
) -> list[str]:
    """Grid lines with their numbers, and the name of the horizontal axis. `x_label` writes a number below it."""
    parts = []
    for value in y_ticks or ticks(y.low, y.high):
        at = y(value)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text text-anchor="end" x="{LEFT - 8}" y="{at + 4:.1f}">{number(value)}</text>')
    below, label = HEIGHT - BOTTOM + 17, x_label or number
    parts += [
        f'<text text-anchor="middle" x="{x(value):.1f}" y="{below}">{label(value)}</text>'
        for value in x_ticks or ticks(x.low, x.high)
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text text-anchor="middle" x="{middle:.1f}" y="{HEIGHT - 2}">{escaped(x_name)}</text>')
    return parts


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between both ends."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def number(value: float) -> str:
    """A number beside an axis: 1500 as 1.5k."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value / 1000:.3g}k" if abs(value) >= 10_000 else f"{value:,.4g}"


def _vertical(x: float, text: str) -> list[str]:
    anchor, side = ("end", -6) if x > WIDTH * 0.6 else ("start", 6)
    place = f'x="{x + side:.1f}" y="{HEIGHT - BOTTOM - 8}"'
    return [
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>',
        f'<text class="strong" text-anchor="{anchor}" {place}>{escaped(text)}</text>',
    ]


def _path(points: Points, x: Scale, y: Scale, color: int, style: str = "") -> str:
    steps = " L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in points)
    return f'<path class="line c{color}{style}" d="M{steps}"/>'


def _band(line: Line, x: Scale, y: Scale) -> str:
    edges = [(at, low) for at, low, _ in line.band] + [(at, high) for at, _, high in reversed(line.band)]
    steps = " L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in edges)
    return f'<path class="band c{line.color}" d="M{steps} Z"/>'


def _dot(x: float, y: float, color: int, title: str, radius: float = 3.5, style: str = "") -> str:
    return (
        f'<circle class="dot c{color}{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
        f"<title>{escaped(title)}</title></circle>"
    )


def svg(parts: Sequence[str], label: str) -> str:
    """A plot with its description for screen readers."""
    content = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escaped(label)}">\n{content}\n</svg>'
