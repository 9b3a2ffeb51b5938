"""Plots of a report as inline SVG: no script, no font, no colour of their own but those of the page."""

from __future__ import annotations

import re
from html import escape

from regard.data.check.finding import LengthStatistics, Overlap

UNFIT = re.compile("[^\t\n -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what no page may hold
WIDE, BROAD, BAR, GAP = 480, 990, 20, 8  # a plot in half of the page or in all of it; height and distance of bars
LETTER = 7.2  # width of one
NAMED = 22  # letters of a name that are shown
MOST = 15  # labels that are drawn
TALL = 210  # of a histogram
LEFT, BASE = 46, 30


def safe(text: str) -> str:
    """A text from the data as text of a page, whatever is in it."""
    return escape(UNFIT.sub("\ufffd", text))


def bars(counts: dict[str, int]) -> str:
    """A bar a label, the most frequent first, the rest as one."""
    shown = sorted(counts.items(), key=lambda one: -one[1])
    rest = sum(count for _, count in shown[MOST:])
    drawn = [(name, count, "bar") for name, count in shown[:MOST]]
    if rest:
        drawn.append((f"{len(shown) - MOST:,} more", rest, "bar rest"))
    most, total = max(count for _, count, _ in drawn), sum(counts.values())
    names = min(max(len(name) for name, _, _ in drawn), NAMED) * LETTER + 12
    room = WIDE - names - 110
    parts = []
    for number, (name, count, style) in enumerate(drawn):
        y = number * (BAR + GAP)
        width = max(room * count / most, 2)
        middle = y + BAR / 2 + 4
        parts.append(f'<text class="name" x="{names - 10:.1f}" y="{middle:.1f}">{safe(_cut(name, NAMED))}</text>')
        parts.append(f'<rect class="{style}" x="{names:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="4"/>')
        parts.append(
            f'<text x="{names + width + 8:.1f}" y="{middle:.1f}">{count:,}'
            f'<tspan class="faint" dx="6">{count / total:.1%}</tspan></text>'
        )
    return _svg(len(drawn) * (BAR + GAP), parts, "Rows of each label")


def histogram(lengths: LengthStatistics) -> str:
    """Rows by their length in tokens, and where the model ends."""
    most, last = max(lengths.counts), lengths.bounds[-1]
    room, tall = WIDE - LEFT - 20, TALL - BASE - 24
    step = room / len(lengths.counts)
    parts = []
    for part in (0.5, 1.0):
        y = 24 + tall * (1 - part)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - 20}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="faint" text-anchor="end" x="{LEFT - 8}" y="{y + 4:.1f}">{_short(most * part)}</text>'
        )
    for number, count in enumerate(lengths.counts):
        height = tall * count / most
        over = lengths.limit is not None and lengths.bounds[number] >= lengths.limit
        x, y = LEFT + number * step, 24 + tall - height
        parts.append(
            f'<rect class="bar{" over" if over else ""}" x="{x + 1:.1f}" y="{y:.1f}" width="{max(step - 2, 1):.1f}" '
            f'height="{height:.1f}" rx="2"><title>{lengths.bounds[number]:,} to {lengths.bounds[number + 1]:,} tokens: '
            f"{count:,}</title></rect>"
        )
    every = max(len(lengths.counts) // 5, 1)
    for number in range(0, len(lengths.bounds), every):
        x = LEFT + number * step
        parts.append(
            f'<text class="faint" text-anchor="middle" x="{x:.1f}" y="{TALL - 8}">{lengths.bounds[number]:,}</text>'
        )
    if lengths.limit is not None and lengths.limit <= last:
        parts += _limit(LEFT + room * lengths.limit / last, tall, lengths.limit)
    return _svg(TALL, parts, "Rows by length in tokens")


def _limit(x: float, tall: float, limit: int) -> list[str]:
    side = "end" if x > WIDE / 2 else "start"
    shift = -6 if side == "end" else 6
    return [
        f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{24 + tall:.1f}"/>',
        f'<text class="warn" text-anchor="{side}" x="{x + shift:.1f}" y="16">the model ends at {limit:,}</text>',
    ]


def overlap(overlaps: tuple[Overlap, ...]) -> str:
    """A bar for each two splits: how much of the later one is in the earlier one, exactly and nearly."""
    parts = []
    names = max(len(f"{one.second} in {one.first}") for one in overlaps) * LETTER + 12
    room = BROAD - names - 260
    for number, one in enumerate(overlaps):
        y = number * (BAR + GAP)
        middle = y + BAR / 2 + 4
        exact, near = (room * count / max(one.rows, 1) for count in (one.exact, one.near))
        said = f"{one.exact:,} the same, {one.near:,} nearly, of {one.rows:,}"
        name = safe(f"{one.second} in {one.first}")
        parts.append(f'<text class="name" x="{names - 10:.1f}" y="{middle:.1f}">{name}</text>')
        for style, x, width in (
            ("track", names, room),
            ("bar over", names, exact),
            ("bar near", names + exact, near),
        ):
            shape = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="3"'
            parts.append(f'<rect class="{style}" {shape}/>')
        parts.append(f'<text x="{names + room + 12:.1f}" y="{middle:.1f}">{safe(said)}</text>')
    return _svg(len(overlaps) * (BAR + GAP), parts, "Rows that two splits share", wide=BROAD)


def _svg(height: float, parts: list[str], title: str, *, wide: int = WIDE) -> str:
    inner = "\n".join(parts)
    return f'<svg viewBox="0 0 {wide} {height:.0f}" role="img" aria-label="{safe(title)}">\n{inner}\n</svg>'


def _short(count: float) -> str:
    return f"{count / 1000:.3g}k" if count >= 1000 else f"{count:.3g}"


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
