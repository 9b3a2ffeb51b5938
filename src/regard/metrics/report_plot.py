"""The report of an evaluation as a picture: a confusion matrix, or bars where a row may have several labels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import InputError, pluralize
from regard.metrics.report import NO_ENTITY, ClassificationReport, ConfusionMatrix, MultilabelConfusion
from regard.metrics.scores import Integers, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg", "pdf")
MOST_CLASSES = 40  # drawn; of more, those with the most mistakes
RIGHT, WRONG, MISSED, DARK, PALE = "#3b6ea8", "#c44e3b", "#e0a458", "#333333", "#bbbbbb"
CELL, SMALL_CELL = 0.5, 0.36  # inches of a cell; of more than 12 classes
LABEL = 24  # characters of a name


def plot_format(path: Path) -> str:
    """The kind of picture that a file name asks for."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise InputError(f"{path} does not end in .png, .svg or .pdf. Name a picture, such as confusion.png.")
    return suffix


def save_report(report: ClassificationReport, path: Path, *, format: str = "png", rows: int) -> None:
    """Draw what a report holds."""
    if isinstance(report.confusion, ConfusionMatrix):
        figure = _matrix(report.confusion, report.unit)
    elif isinstance(report.confusion, MultilabelConfusion):
        figure = _bars(report, report.confusion, rows)
    else:
        raise InputError("there is no confusion matrix to draw: this task predicts no classes.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(path, dpi=150, format=format)
    if any("missing from" in str(warning.message) for warning in caught):
        warnings.warn("the font has no picture of some letters; they are drawn as boxes.", UserWarning, stacklevel=3)


def _matrix(confusion: ConfusionMatrix, unit: str) -> Any:
    """Counts in cells; color is the fraction of the true class, blue on the diagonal and red elsewhere."""
    from matplotlib.figure import Figure

    names, table, fraction = _shown(confusion)
    size = len(names) * (CELL if len(names) <= 12 else SMALL_CELL)
    figure = Figure(figsize=(size + 2.6, size + 2.4), layout="constrained")
    axis = figure.add_subplot()
    axis.imshow(_colors(fraction), aspect="equal")
    _write_counts(axis, table, fraction)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), names)
    axis.set_xlabel("predicted", color=DARK, labelpad=8)
    axis.set_ylabel("true", color=DARK, labelpad=8)
    axis.set_title(_title(confusion, len(names), unit), fontsize=11, color=DARK, loc="left", pad=12)
    axis.set_xticks(np.arange(1, len(names)) - 0.5, minor=True)
    axis.set_yticks(np.arange(1, len(names)) - 0.5, minor=True)
    axis.grid(which="minor", color="#e4e4e4", linewidth=0.7)
    axis.tick_params(which="both", length=0, labelcolor=DARK)
    axis.spines[:].set_color(PALE)
    return figure


def _shown(confusion: ConfusionMatrix) -> tuple[list[str], Integers, Any]:
    """Names, counts and shares of the true class; of many classes those with the most mistakes, in their order."""
    table = confusion.matrix()
    fraction = ratio(table, table.sum(1, keepdims=True))
    classes = np.arange(len(table))
    if len(table) > MOST_CLASSES:
        wrong = table.sum(0) + table.sum(1) - 2 * np.diagonal(table)
        classes = np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])
    names = [_short(confusion.labels[index]) for index in classes]
    return names, table[np.ix_(classes, classes)], fraction[np.ix_(classes, classes)]


def _colors(fraction: Any) -> Any:
    """RGBA of each cell. The root of a share lifts rare mistakes out of the white."""
    from matplotlib import colormaps

    strength = 0.85 * np.sqrt(fraction)
    colors = colormaps["Reds"](strength)
    right = np.eye(len(fraction), dtype=bool)
    colors[right] = colormaps["Blues"](strength[right])
    colors[fraction == 0] = (1, 1, 1, 1)
    return colors


def _write_counts(axis: Axes, table: Integers, fraction: Any) -> None:
    for (true, predicted), count in np.ndenumerate(table):
        if count:
            color = "white" if fraction[true, predicted] > 0.45 else DARK
            number = f"{count:,}" if count < 100_000 else f"{count:.0e}"
            size = 9 if len(table) <= 12 and len(number) < 5 else 7
            axis.text(predicted, true, number, ha="center", va="center", color=color, fontsize=size)


def _title(confusion: ConfusionMatrix, shown: int, unit: str) -> str:
    total = sum(confusion.cells.values())
    right = sum(count for (true, predicted), count in confusion.cells.items() if true == predicted)
    if unit == "entity":
        return f"entities with exact boundaries, {right:,} correct\n{NO_ENTITY}: none with these boundaries"
    noun = {"class": "rows", "tag": "words", "question": "questions"}.get(unit, "rows")
    title = f"{right:,} of {total:,} {noun} correct ({100 * right / max(total, 1):.1f} %)"
    if shown < len(confusion.labels):
        title += f"\nthe {shown} of {len(confusion.labels)} classes with the most mistakes"
    return title


def _bars(report: ClassificationReport, confusion: MultilabelConfusion, rows: int) -> Any:
    """A bar for each label: correct, missed, wrong; its F1 beside it."""
    from matplotlib.figure import Figure

    order = sorted(range(len(confusion.labels)), key=lambda index: -sum(confusion.tables[index][1]))[:MOST_CLASSES]
    tables = np.array([confusion.tables[index] for index in order])
    names = [_short(confusion.labels[index]) for index in order]
    figure = Figure(figsize=(8, 0.36 * len(names) + 1.7), layout="constrained")
    axis = figure.add_subplot()
    ends = np.zeros(len(names))
    parts = {
        "correct": (tables[:, 1, 1], RIGHT),
        "missed": (tables[:, 1, 0], MISSED),
        "wrong": (tables[:, 0, 1], WRONG),
    }
    for name, (counts, color) in parts.items():
        axis.barh(range(len(names)), counts, left=ends, color=color, label=name, height=0.72)
        ends += counts
    for index, end in enumerate(ends):
        f1 = report.classes[confusion.labels[order[index]]].f1
        placement: Any = {"textcoords": "offset points", "xytext": (5, 0), "va": "center"}
        axis.annotate(f"F1 {f1:.2f}", (end, index), fontsize=8, color=DARK, **placement)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set_xlabel("rows", color=DARK)
    axis.set_title(
        f"{pluralize(rows, 'row')}, {pluralize(len(confusion.labels), 'label')}",
        fontsize=11,
        color=DARK,
        loc="left",
        pad=26,
    )
    axis.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(length=0, labelcolor=DARK)
    axis.grid(axis="x", alpha=0.25)
    axis.set_axisbelow(True)
    return figure


def _short(label: str) -> str:
    flat = " ".join(label.replace("$", r"\$").split()) or "(empty)"
    return flat if len(flat) <= LABEL else f"{flat[: LABEL - 1]}…"
