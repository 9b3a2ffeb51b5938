"""Attention weights as a picture: a heat map for each head of each layer."""

from __future__ import annotations

from pathlib import Path

from regard.data.atomic import atomic_path
from regard.errors import InputError
from regard.predict.attention import AttentionWindow

CELL = 0.22  # inches of a token
COLUMNS = 4
MAX_TOKENS, MAX_MAPS = 64, 48


def draw_attention(window: AttentionWindow, heads: list[int], path: Path) -> None:
    """Rows look at columns; the darker, the more. Layers are counted from 1, heads from 0."""
    shown = [(layer, place) for layer in window.weights for place in range(len(heads))]
    size = len(window.tokens)
    if size > MAX_TOKENS:
        raise InputError(f"a picture shows up to {MAX_TOKENS} tokens; this text has {size}. Give a shorter one.")
    if len(shown) > MAX_MAPS:
        raise InputError(
            f"a picture shows up to {MAX_MAPS} heads; {len(shown)} were asked for. Name fewer layers or heads."
        )
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    inches = CELL * size + 1.4
    figure = Figure(figsize=(columns * inches, rows * inches), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel, (layer, place) in zip(panels, shown, strict=False):
        panel.imshow(window.weights[layer][place].float().cpu().numpy(), cmap="Blues", vmin=0, vmax=1)
        panel.set_xticks(range(size), window.tokens, rotation=90, fontsize=7)
        panel.set_yticks(range(size), window.tokens, fontsize=7)
        panel.set_title(f"layer {layer}, head {heads[place]}", fontsize=9)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix.removeprefix(".") or "png")
