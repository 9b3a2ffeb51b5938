"""Plots of a report as inline SVG: no script, no font, no colour of their own but those of the page."""

from __future__ import annotations

from html import escape

from regard.data.check.finding import Lengths, Overlap

WIDE, BAR, GAP = 640, 22, 8
NAMES = 150  # room for the names of labels
MOST = 15  # labels that are drawn
TALL = 210  # of a histogram
LEFT, BASE = 46, 30


def bars(counts: dict[str, int]) -> str:
    """A bar a label, the most frequent first, the rest as one."""
    shown = sorted(counts.items(), key=lambda one: -one[1])
    rest = sum(count for _, count in shown[MOST:])
    drawn = [(name, count, "bar") for name, count in shown[:MOST]]
    if rest:
        drawn.append((f"{len(shown) - MOST:,} more", rest, "bar rest"))
    most, total = max(count for _, count, _ in drawn), sum(counts.values())
    room = WIDE - NAMES - 130
    parts = []
    for number, (name, count, style) in enumerate(drawn):
        y = number * (BAR + GAP)
        width = max(room * count / most, 2)
        middle = y + BAR / 2 + 4
        parts.append(f'<text class="name" x="{NAMES - 10}" y="{middle:.1f}">{escape(_cut(name, 20))}</text>')
        parts.append(f'<rect class="{style}" x="{NAMES}" y="{y}" width="{width:.1f}" height="{BAR}" rx="4"/>')
        parts.append(
            f'<text x="{NAMES + width + 8:.1f}" y="{middle:.1f}">{count:,}'
            f'<tspan class="faint" dx="6">{count / total:.1%}</tspan></text>'
        )
    return _svg(len(drawn) * (BAR + GAP), parts, "Rows of each label")


def histogram(lengths: Lengths) -> str:
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
    for part in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + room * part
        parts.append(f'<text class="faint" text-anchor="middle" x="{x:.1f}" y="{TALL - 8}">{last * part:,.0f}</text>')
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
    room = WIDE - NAMES - 190
    for number, one in enumerate(overlaps):
        y = number * (BAR + GAP)
        middle = y + BAR / 2 + 4
        exact, near = (room * count / max(one.rows, 1) for count in (one.exact, one.near))
        said = f"{one.exact:,} the same, {one.near:,} nearly, of {one.rows:,}"
        parts.append(
            f'<text class="name" x="{NAMES - 10}" y="{middle:.1f}">{escape(f"{one.second} in {one.first}")}</text>'
        )
        parts.append(f'<rect class="track" x="{NAMES}" y="{y}" width="{room}" height="{BAR}" rx="4"/>')
        parts.append(f'<rect class="bar over" x="{NAMES}" y="{y}" width="{exact:.1f}" height="{BAR}" rx="2"/>')
        parts.append(
            f'<rect class="bar near" x="{NAMES + exact:.1f}" y="{y}" width="{near:.1f}" height="{BAR}" rx="2"/>'
        )
        parts.append(f'<text x="{NAMES + room + 10}" y="{middle:.1f}">{escape(said)}</text>')
    return _svg(len(overlaps) * (BAR + GAP), parts, "Rows that two splits share")


def _svg(height: float, parts: list[str], title: str) -> str:
    inner = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDE} {height:.0f}" role="img" aria-label="{escape(title)}">\n{inner}\n</svg>'


def _short(count: float) -> str:
    return f"{count / 1000:.3g}k" if count >= 1000 else f"{count:.3g}"


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
