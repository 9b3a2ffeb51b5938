"""The confusion matrix and the table of classes."""

from __future__ import annotations

from regard.data.check.plots import escaped
from regard.metrics.report import ClassificationReport, ConfusionMatrix, MultilabelConfusion
from regard.report.elements import card, folded, shortened, table

MAX_MATRIX = 16  # classes of a matrix; of more, the most confused pairs are listed
MAX_CLASSES = 60  # lines of the table; of more, those with the lowest F1
NAME = 40  # characters of a label
DARK = 0.55  # from which share of a color the text on it is light


def confusion_card(report: ClassificationReport) -> str:
    """Which class is predicted as which."""
    confusion = report.confusion
    if not isinstance(confusion, ConfusionMatrix):
        return ""
    note = "Rows are true, columns are predicted; colors are fractions of a row."
    if len(confusion.labels) <= MAX_MATRIX:
        return card("Confusion matrix", _matrix(confusion), note=note, name="confusion")
    pairs = [(pair.true, pair.predicted, f"{pair.count:,}") for pair in confusion.most_confused(15)]
    rows = [[*(escaped(shortened(name, NAME)) for name in pair[:2]), pair[2]] for pair in pairs]
    return card("Most confused classes", table(["true", "predicted", "rows"], rows, numbers=(2,)), name="confusion")


def _matrix(confusion: ConfusionMatrix) -> str:
    names = [escaped(shortened(name, NAME)) for name in confusion.labels]
    head = "".join(f'<th title="{name}">{name}</th>' for name in ["", *names])
    rows = [f"<tr>{head}</tr>"]
    for true, (name, counts) in enumerate(zip(names, confusion.matrix().tolist(), strict=True)):
        total = sum(counts) or 1
        cells = "".join(_cell(count, count / total, right=true == column) for column, count in enumerate(counts))
        rows.append(f'<tr><th title="{name}">{name}</th>{cells}</tr>')
    return f'<div class="scroll"><table class="matrix">{"".join(rows)}</table></div>'


def _cell(count: int, fraction: float, *, right: bool) -> str:
    if not count:
        return '<td class="zero">·</td>'
    color = 0 if right else 1
    style = " full" if fraction > DARK else ""
    return f'<td class="c{color}{style}" style="--v:{fraction:.3f}" title="{fraction:.1%}">{count:,}</td>'


def class_card(report: ClassificationReport) -> str:
    """Precision, recall and F1 of each class."""
    classes = list(report.classes.items())
    shown = classes
    if len(classes) > MAX_CLASSES:
        known = [one for one in classes if one[1].support]
        shown = sorted(known, key=lambda one: (one[1].f1, one[0]))[:MAX_CLASSES]
    means = [(f"{name} average", score) for name, score in report.averages.items()]
    rows = [
        [
            escaped(shortened(name, NAME)),
            *(f"{value:.3f}" for value in (score.precision, score.recall, score.f1)),
            f"{score.support:,}",
        ]
        for name, score in [*shown, *means]
    ]
    title = f"Scores by {report.unit}"
    content = table([report.unit, "precision", "recall", "F1", "rows"], rows, numbers=(1, 2, 3, 4))
    more = f"The {len(shown)} of {len(classes):,} with the lowest F1." if len(shown) < len(classes) else ""
    return card(title, content + _per_label(report), note=more, name="classes")


def _per_label(report: ClassificationReport) -> str:
    """Hits, misses and false predictions of each label, where a row may have several."""
    confusion = report.confusion
    if not isinstance(confusion, MultilabelConfusion):
        return ""
    rows = [
        [escaped(shortened(name, NAME)), *(f"{value:,}" for value in (right, missed, wrong))]
        for name, ((_, wrong), (missed, right)) in zip(confusion.labels, confusion.tables, strict=True)
    ]
    content = table(["label", "predicted rightly", "missed", "predicted wrongly"], rows, numbers=(1, 2, 3))
    return folded("Counts of each label", content)
