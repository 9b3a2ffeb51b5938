"""Scores of each class and the confusion matrix, as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.cli.output import shorten

if TYPE_CHECKING:
    from regard.metrics.report import ClassificationReport, ClassScore, ConfusionMatrix

WIDTH = 100  # columns of a matrix
MAX_CLASSES = 40  # lines of the table; of more classes, those with the lowest F1
LOWEST_CLASSES = 20
MAX_PAIRS = 10
LABEL = 28  # characters of a name
NOTES = {"entity": " (strict IOB2; O: no entity with these boundaries)"}


def print_report(report: ClassificationReport) -> None:
    """Precision, recall and F1 of each class; then the matrix where it is small, else the most confused pairs."""
    from regard.metrics.report import ConfusionMatrix

    if not report.classes:
        return
    print()
    _print_classes(report)
    if isinstance(report.confusion, ConfusionMatrix):
        print()
        _print_confusion(report.confusion, NOTES.get(report.unit, ""))


def _print_classes(report: ClassificationReport) -> None:
    all_classes = list(report.classes.items())
    lines = all_classes
    if len(all_classes) > MAX_CLASSES:
        known = [line for line in all_classes if line[1].support]
        lines = sorted(known, key=lambda line: (line[1].f1, line[0]))[:LOWEST_CLASSES]
    means = [(f"{name} average", score) for name, score in report.averages.items()]
    rows = [[report.unit, "precision", "recall", "f1", "support"]]
    rows += [_class_row(name, score) for name, score in [*lines, *means]]
    print_columns(rows)
    if len(lines) < len(all_classes):
        print(f"The {len(lines)} of {len(all_classes):,} with the lowest F1; --json has all.")


def _class_row(name: str, score: ClassScore) -> list[str]:
    numbers = (score.precision, score.recall, score.f1)
    return [shorten(name, LABEL), *(f"{number:.4f}" for number in numbers), f"{score.support:,}"]


def _print_confusion(confusion: ConfusionMatrix, note: str) -> None:
    rows = _matrix_rows(confusion, numbered=False)
    if rows is None:
        rows = _matrix_rows(confusion, numbered=True)
    if rows is not None:
        print(f"confusion matrix: rows are true, columns are predicted{note}")
        print_columns(rows)
        return
    pairs = confusion.most_confused(MAX_PAIRS)
    if pairs:
        print(f"most confused{note}")
        lines = [[shorten(pair.true, LABEL), shorten(pair.predicted, LABEL), f"{pair.count:,}"] for pair in pairs]
        print_columns([["true", "predicted", "count"], *lines], left=2)


def _matrix_rows(confusion: ConfusionMatrix, *, numbered: bool) -> list[list[str]] | None:
    """The matrix as text, its columns under names or numbers; None where it is too wide."""
    if len(confusion.labels) > MAX_CLASSES:
        return None
    names = [shorten(name, LABEL) for name in confusion.labels]
    heads = [str(number) for number in range(1, len(names) + 1)] if numbered else names
    sides = [f"{number} {name}" for number, name in zip(heads, names, strict=True)] if numbered else names
    body = [[f"{count:,}" if count else "." for count in row] for row in confusion.matrix().tolist()]
    rows = [["", *heads], *([side, *cells] for side, cells in zip(sides, body, strict=True))]
    return rows if sum(_widths(rows)) + 2 * len(names) <= WIDTH else None


def print_columns(rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """The first `left` columns to the left, numbers to the right."""
    from rich.cells import cell_len

    widths = _widths(rows)
    for row in rows:
        cells = []
        for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            cells.append(cell + blank if index < left else blank + cell)
        print("  ".join(cells).rstrip())


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
