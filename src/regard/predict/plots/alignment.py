"""Alignments as a picture: a heat map for each, with the words of both languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.atomic import atomic_path

if TYPE_CHECKING:
    from regard.predict.translation import Alignment

CELL = 0.42  # inches of a word
MAX_ALIGNMENTS = 12  # alignments in one picture


def draw_alignments(alignments: Sequence[Alignment], path: Path) -> None:
    """By words, side by side; the darker, the more a word of the translation looked there."""
    from matplotlib.figure import Figure

    shown = [one.by_word() for one in alignments]
    wide = [CELL * len(one.source) + 1.5 for one in shown]
    high = max(CELL * len(one.target) + 1.6 for one in shown)
    figure = Figure(figsize=(sum(wide), high), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False, width_ratios=wide)[0]
    for axis, one in zip(axes, shown, strict=True):
        axis.imshow(one.weights, cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(len(one.source)), one.source, rotation=55, ha="left", rotation_mode="anchor")
        axis.set_yticks(range(len(one.target)), one.target)
        axis.xaxis.tick_top()
        axis.tick_params(length=0)
        axis.spines[:].set_color("#bbbbbb")
        axis.set_xticks([x - 0.5 for x in range(1, len(one.source))], minor=True)
        axis.set_yticks([y - 0.5 for y in range(1, len(one.target))], minor=True)
        axis.grid(which="minor", color="#e8e8e8", linewidth=0.6)
        axis.tick_params(which="minor", length=0)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix.removeprefix(".") or "png")
