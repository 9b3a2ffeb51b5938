"""A figure of one layer for papers: lines from queries to keys, and the heat map beside."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.atomic import atomic_path
from regard.errors import InputError
from regard.look.heads import check_heads, weight_map
from regard.model.mean_layer import ends_with_mean

if TYPE_CHECKING:
    from regard.look.reading import AttentionPart
    from regard.predict.model import Model

COLORS = ("#3b6ea8", "#d9822b", "#3f8f5b", "#c44e3b", "#8461b5", "#8c6239", "#d067a4", "#6d7684", "#a3a12c", "#2f9fb0")
MAX_TOKENS = 64
ROW = 0.24  # inches of a token
FLOOR = 0.02  # smallest weight that is drawn as a line


def default_layer(model: Model, part: AttentionPart) -> int:
    """The last layer, counted from 1; the one before if the last only averages all tokens."""
    averages = part.name == "encoder" and part.depth > 1 and ends_with_mean(model.network)
    return part.depth - 1 if averages else part.depth


def draw_heads(part: AttentionPart, layer: int, heads: Sequence[int] | None, path: Path) -> None:
    """Write the figure as .png, .svg or .pdf, by the name of the file.

    Raises InputError for texts of more than MAX_TOKENS tokens.
    """
    size = max(len(part.queries), len(part.keys))
    if size > MAX_TOKENS:
        raise InputError(f"a figure shows up to {MAX_TOKENS} tokens; this text has {size}. Give a shorter one.")
    from matplotlib.figure import Figure

    chosen = check_heads(part, heads)
    weights_HTS = weight_map(part, layer, chosen).values_HTS.cpu().numpy()
    height = ROW * size + 0.9
    figure = Figure(figsize=(4.4 + ROW * len(part.keys) + 1.6, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(4.4, ROW * len(part.keys) + 1.6))
    names = [_name(token.text) for token in part.queries], [_name(token.text) for token in part.keys]
    _draw_lines(left, weights_HTS, chosen, names)
    image = right.imshow(weights_HTS.mean(0), cmap="Blues", vmin=0)
    scale = figure.colorbar(image, ax=right, shrink=0.6, pad=0.02)
    scale.ax.tick_params(labelsize=7)
    scale.outline.set_visible(False)
    right.set_xticks(range(len(names[1])), names[1], rotation=90, fontsize=8)
    right.set_yticks(range(len(names[0])), names[0], fontsize=8)
    right.tick_params(length=0)
    right.spines[:].set_visible(False)
    which = _heads_in_words(chosen) if len(chosen) < part.heads else "all heads"
    shown = "alignment" if part.alignment_TS is not None else f"layer {layer}, {which}"
    figure.suptitle(shown, fontsize=9)
    with atomic_path(path) as new_file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # letters that the font does not have are drawn as boxes
        figure.savefig(new_file, dpi=200, format=path.suffix.removeprefix(".") or "png")


def _heads_in_words(heads: Sequence[int]) -> str:
    return f"head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}"


def _name(text: str) -> str:
    """A token as text: no mathematics between dollar signs, and not longer than a line."""
    return (text if len(text) <= 16 else f"{text[:15]}…").replace("$", r"\$")


def _draw_lines(axis: Any, weights_HTS: Any, heads: Sequence[int], names: tuple[list[str], list[str]]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    for index, head in enumerate(heads):
        for query, row in enumerate(weights_HTS[index]):
            for key, weight in enumerate(row):
                if weight < FLOOR:
                    continue
                points = [(0, query), (0.4, query), (0.6, key), (1, key)]
                curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
                color = COLORS[head % len(COLORS)]
                axis.add_patch(PathPatch(curve, fill=False, color=color, alpha=float(weight), linewidth=1.4))
    for place, side, align in ((-0.03, names[0], "right"), (1.03, names[1], "left")):
        for row, name in enumerate(side):
            axis.text(place, row, name, ha=align, va="center", fontsize=8)
    axis.set_xlim(-0.35, 1.35)
    axis.set_ylim(max(map(len, names)) - 0.5, -0.5)
    axis.axis("off")
