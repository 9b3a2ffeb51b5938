"""Attention weights as an inline SVG picture, as notebooks show it: no script, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

CELL = 18  # pixels
MARGIN = 110  # pixels for the names of tokens
MAX_TOKENS = 64


def attention_svg(tokens: Sequence[str], weights: Sequence[Sequence[float]], *, title: str, layer: int) -> str:
    """A heat map of the first MAX_TOKENS tokens: rows attend to columns; the darker, the more."""
    names = [escape(token if len(token) <= 14 else f"{token[:13]}…") for token in tokens[:MAX_TOKENS]]
    size = MARGIN + CELL * len(names)
    largest = max((weight for row in weights for weight in row), default=0.0) or 1.0
    parts = []
    for row, name in enumerate(names):
        y = MARGIN + CELL * row
        parts.append(f'<text x="{MARGIN - 6}" y="{y + 13}" text-anchor="end">{name}</text>')
        turned = MARGIN + CELL * row + 13
        parts.append(f'<text transform="translate({turned} {MARGIN - 6}) rotate(-90)">{name}</text>')
        for column, weight in enumerate(weights[row][: len(names)]):
            x = MARGIN + CELL * column
            tip = f"{name} → {names[column]}: {weight:.3f}"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="#3b6ea8" '
                f'fill-opacity="{weight / largest:.3f}"><title>{tip}</title></rect>'
            )
    more = f" (the first {MAX_TOKENS} tokens)" if len(tokens) > MAX_TOKENS else ""
    head = f"<div><strong>{escape(title)}</strong>, mean of the heads of layer {layer}{more}</div>"
    style = "font:12px system-ui,sans-serif;fill:currentColor"
    return f'{head}<svg width="{size}" height="{size}" style="{style}" role="img">{"".join(parts)}</svg>'
