"""Plots of a check report as inline SVG, without scripts or fonts. Colors are those of the page."""

from __future__ import annotations

import re
from html import escape

from regard.data.check.finding import LengthStatistics, Overlap

INVALID = re.compile("[^\t\n -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters not allowed in HTML
# Sizes in pixels.
WIDTH = 480
FULL_WIDTH = 990
BAR_HEIGHT = 20
BAR_GAP = 8
LETTER_WIDTH = 7.2
HISTOGRAM_HEIGHT = 210
LEFT_MARGIN = 46
RIGHT_MARGIN = 20
TOP_MARGIN = 24
BOTTOM_MARGIN = 30
MAX_NAME_LENGTH = 22  # letters of a label
MAX_LABELS = 15


def escaped(text: str) -> str:
    """A text from the data, escaped for HTML."""
    return escape(INVALID.sub("\ufffd", text))


def bars(counts: dict[str, int]) -> str:
    """A horizontal bar per label, the most frequent first; labels beyond MAX_LABELS share one bar."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    rows = [(name, count, "bar") for name, count in ranked[:MAX_LABELS]]
    if len(ranked) > MAX_LABELS:
        rows.append(
            (f"{len(ranked) - MAX_LABELS:,} others", sum(count for _, count in ranked[MAX_LABELS:]), "bar rest")
        )
    max_count = max(count for _, count, _ in rows)
    total = sum(counts.values())
    left = min(max(len(name) for name, _, _ in rows), MAX_NAME_LENGTH) * LETTER_WIDTH + 12
    max_width = WIDTH - left - 110
    parts = []
    for number, (name, count, style) in enumerate(rows):
        y = number * (BAR_HEIGHT + BAR_GAP)
        width = max(max_width * count / max_count, 2)
        parts.append(_bar_name(left, y, _shorten(name)))
        parts.append(_bar(style, left, y, width))
        parts.append(
            f'<text x="{left + width + 8:.1f}" y="{_baseline(y):.1f}">{count:,}'
            f'<tspan class="faint" dx="6">{count / total:.1%}</tspan></text>'
        )
    return _svg(len(rows) * (BAR_HEIGHT + BAR_GAP), parts, "Rows per label")


def histogram(lengths: LengthStatistics) -> str:
    """The number of rows by length in tokens, and the model's limit."""
    height = HISTOGRAM_HEIGHT - BOTTOM_MARGIN - TOP_MARGIN
    width = WIDTH - LEFT_MARGIN - RIGHT_MARGIN
    step = width / len(lengths.counts)
    max_count = max(lengths.counts)
    parts = _grid_lines(max_count, height)
    for number, count in enumerate(lengths.counts):
        start, end = lengths.bounds[number : number + 2]
        is_over = lengths.limit is not None and start >= lengths.limit
        bar_height = height * count / max_count
        x = LEFT_MARGIN + number * step + 1
        y = TOP_MARGIN + height - bar_height
        parts.append(
            f'<rect class="bar{" over" if is_over else ""}" x="{x:.1f}" y="{y:.1f}" width="{max(step - 2, 1):.1f}" '
            f'height="{bar_height:.1f}" rx="2"><title>{start:,} to {end:,} tokens: {count:,} rows</title></rect>'
        )
    for number in range(0, len(lengths.bounds), max(len(lengths.counts) // 5, 1)):
        x = LEFT_MARGIN + number * step
        label = f"{lengths.bounds[number]:,}"
        parts.append(f'<text class="faint" text-anchor="middle" x="{x:.1f}" y="{HISTOGRAM_HEIGHT - 8}">{label}</text>')
    if lengths.limit is not None and lengths.limit <= lengths.bounds[-1]:
        parts += _limit_line(LEFT_MARGIN + width * lengths.limit / lengths.bounds[-1], height, lengths.limit)
    return _svg(HISTOGRAM_HEIGHT, parts, "Rows by length in tokens")


def _grid_lines(max_count: int, height: float) -> list[str]:
    """Horizontal lines at half and at the full height, with their counts."""
    parts = []
    for fraction in (0.5, 1.0):
        y = TOP_MARGIN + height * (1 - fraction)
        label = _short_number(max_count * fraction)
        parts.append(f'<line class="grid" x1="{LEFT_MARGIN}" x2="{WIDTH - RIGHT_MARGIN}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="faint" text-anchor="end" x="{LEFT_MARGIN - 8}" y="{y + 4:.1f}">{label}</text>')
    return parts


def _limit_line(x: float, height: float, limit: int) -> list[str]:
    """A vertical line at the model's limit; its text is on the side with more space."""
    is_right = x > WIDTH / 2
    anchor = "end" if is_right else "start"
    text_x = x - 6 if is_right else x + 6
    return [
        f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{TOP_MARGIN + height:.1f}"/>',
        f'<text class="warn" text-anchor="{anchor}" x="{text_x:.1f}" y="16">limit of the model: {limit:,}</text>',
    ]


def overlap_bars(overlaps: tuple[Overlap, ...]) -> str:
    """A bar for each two splits: the fraction of the second that also occurs in the first, exactly and nearly."""
    names = [f"{overlap.second} in {overlap.first}" for overlap in overlaps]
    left = max(map(len, names)) * LETTER_WIDTH + 12
    max_width = FULL_WIDTH - left - 260
    parts = []
    for number, (name, overlap) in enumerate(zip(names, overlaps, strict=True)):
        y = number * (BAR_HEIGHT + BAR_GAP)
        exact = max_width * overlap.exact / max(overlap.rows, 1)
        near = max_width * overlap.near / max(overlap.rows, 1)
        counts = f"{overlap.exact:,} identical, {overlap.near:,} similar, of {overlap.rows:,}"
        parts.append(_bar_name(left, y, name))
        parts.append(_bar("track", left, y, max_width))
        parts.append(_bar("bar over", left, y, exact))
        parts.append(_bar("bar near", left + exact, y, near))
        parts.append(f'<text x="{left + max_width + 12:.1f}" y="{_baseline(y):.1f}">{escaped(counts)}</text>')
    return _svg(len(overlaps) * (BAR_HEIGHT + BAR_GAP), parts, "Rows in two splits", width=FULL_WIDTH)


def _bar(style: str, x: float, y: float, width: float) -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR_HEIGHT}" rx="3"/>'


def _bar_name(left: float, y: float, name: str) -> str:
    return f'<text class="name" x="{left - 10:.1f}" y="{_baseline(y):.1f}">{escaped(name)}</text>'


def _baseline(y: float) -> float:
    """The vertical position of text beside a bar."""
    return y + BAR_HEIGHT / 2 + 4


def _svg(height: float, parts: list[str], title: str, *, width: int = WIDTH) -> str:
    content = "\n".join(parts)
    return f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escaped(title)}">\n{content}\n</svg>'


def _short_number(count: float) -> str:
    return f"{count / 1000:.3g}k" if count >= 1000 else f"{count:.3g}"


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"
