"""Pictures of tables of numbers with names: predictions, attention weights, and curves in the same style.

Figures are made with pyplot, so that notebooks and lessons show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, RED, GREEN, AMBER, VIOLET, GRAY = "#3b6ea8", "#c44e3b", "#3f7d52", "#a8700f", "#7a5ba6", "#626d80"
COLORS = (BLUE, RED, GREEN, AMBER, VIOLET, GRAY)
CELL = 0.52  # inches of a column
ROW = 0.36  # inches of a row
LETTER = 0.085  # inches of a letter of a name
MAX_NUMBERS = 400  # cells; larger tables have no numbers in their cells


def heat_map(
    matrix: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    row_name: str = "",
    column_name: str = "",
    numbers: bool | None = None,
    largest: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a table of numbers as a heat map: the darker a cell, the larger its number.

    matrix: numbers of shape (rows, columns), as a tensor, an array or lists; negative numbers are drawn red.
    numbers: write the numbers into the cells; by default in tables of up to 400 cells.
    largest: the number of the darkest cell; by default the largest of the table.
    ax: axes of matplotlib to draw on; a new figure if not given.

        heat_map([[0.2, 0.8], [1, 0]], ["cat", "sat"], ["cat", "sat"], title="weights")
    """
    values = np.asarray(matrix.detach().cpu() if hasattr(matrix, "detach") else matrix, dtype=float)
    if values.shape != (len(rows), len(columns)):
        raise InputError(
            f"a table of shape {values.shape} was given with {len(rows)} row names and {len(columns)} column names. "
            "Give one name per row and column."
        )
    if ax is None:
        from matplotlib import pyplot

        size = table_size(rows, columns)
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    top = largest if largest is not None else float(np.nanmax(np.abs(values), initial=0)) or 1.0
    is_signed = bool((values < 0).any())
    ax.imshow(values, cmap="RdBu" if is_signed else "Blues", vmin=-top if is_signed else 0, vmax=top, aspect="auto")
    _name_axes(ax, rows, columns, row_name, column_name)
    if title:
        ax.set_title(title, fontsize=10, pad=8)
    if numbers if numbers is not None else values.size <= MAX_NUMBERS:
        _write_numbers(ax, values, top)
    return ax


def table_size(rows: Sequence[str], columns: Sequence[str]) -> tuple[float, float]:
    """Width and height of the figure of a table, in inches."""
    left = LETTER * max((len(name) for name in rows), default=0)
    above = LETTER * max((len(name) for name in columns), default=0)
    return left + CELL * len(columns) + 0.5, above + ROW * len(rows) + 0.7


def _name_axes(ax: Axes, rows: Sequence[str], columns: Sequence[str], row_name: str, column_name: str) -> None:
    is_long = max((len(name) for name in columns), default=0) * LETTER > CELL
    turned: dict[str, Any] = {"rotation": 50, "ha": "left", "rotation_mode": "anchor"} if is_long else {}
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xticks(range(len(columns)), columns, fontsize=9, **turned)
    ax.set_yticks(range(len(rows)), rows, fontsize=9)
    ax.set_xlabel(column_name, fontsize=9, color=GRAY)
    ax.set_ylabel(row_name, fontsize=9, color=GRAY)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
    ax.set_yticks([y - 0.5 for y in range(1, len(rows))], minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="minor", length=0)


def _write_numbers(ax: Axes, values: np.ndarray[Any, Any], top: float) -> None:
    are_counts = bool((np.nan_to_num(values) % 1 == 0).all()) and top > 1
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            continue
        text = f"{value:.0f}" if are_counts or value == 0 else f"{value:.2f}"
        color = "white" if abs(value) > 0.6 * top else "#1c2330"
        if value == 0:
            color = "#b5bac4"
        ax.text(column, row, text, ha="center", va="center", fontsize=8, color=color)


def line_plot(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_name: str = "",
    y_name: str = "",
    title: str = "",
    log: str = "",
    dots: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw named lines, each with its x and y values.

    log: axes with a logarithmic scale: "x", "y" or "xy".
    dots: mark each point.

        line_plot({"loss": ([1, 2, 3], [2.0, 1.2, 0.9])}, x_name="step")
    """
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")[1]
    for number, (name, (x, y)) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        ax.plot(x, y, label=name, color=color, linewidth=1.8, marker="o" if dots else None, markersize=4)
    plain_axes(ax, x_name=x_name, y_name=y_name, title=title)
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")
    if len(lines) > 1:
        ax.legend(frameon=False, fontsize=9)
    return ax


def plain_axes(ax: Axes, *, x_name: str = "", y_name: str = "", title: str = "") -> Axes:
    """Axes in the style of the package: a light grid, no frame, small gray names."""
    ax.set_xlabel(x_name, fontsize=9, color=GRAY)
    ax.set_ylabel(y_name, fontsize=9, color=GRAY)
    if title:
        ax.set_title(title, fontsize=10)
    ax.tick_params(labelsize=8, length=0)
    ax.grid(color="#e2e5eb", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)
    return ax
