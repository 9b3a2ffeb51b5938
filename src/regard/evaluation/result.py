"""The scores of an evaluation, by class, with calibration and abstention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from regard.data.atomic import atomic_path, check_output_path
from regard.display import html_summary
from regard.errors import InputError
from regard.metrics.calibration import Calibration
from regard.metrics.confidence import Score, scores_in_words
from regard.metrics.report import ClassificationReport, ClassScore, ConfusionMatrix, MultilabelConfusion


@dataclass(frozen=True)
class Abstention:
    """What is left if the model does not answer below a confidence."""

    below: float  # the confidence
    coverage: Score  # fraction of the rows that are answered
    scores: dict[str, Score]  # on these rows only; empty if there is none

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Evaluation:
    """Scores on some rows; `main` names the one that matters most."""

    task: str  # name of the task, such as "classify"
    rows: int  # rows that were scored
    scores: dict[str, Score]  # by name, each with a 95 % interval
    seconds: float  # duration of the evaluation
    folder: str | None  # the model folder
    main: str  # name of the score that matters most
    loss: float  # mean loss
    data: str  # the recognized format and columns
    bad: int = 0  # rows that were skipped
    unit: str = "rows"  # what `rows` counts
    signatures: dict[str, str] = field(default_factory=dict)  # exact definitions of scores, such as sacrebleu's
    report: ClassificationReport = field(
        default_factory=ClassificationReport
    )  # scores of each class and the confusion matrix
    calibration: Calibration | None = None  # whether probabilities are right as often as they say
    abstention: Abstention | None = None  # scores of the rows that are answered with `abstain`
    seen: float | None = None  # fraction of the rows that the model was trained on, by their hashes; None if unknown

    @property
    def classes(self) -> dict[str, ClassScore]:
        """Precision, recall, F1 and support of each class, label, tag or type of entity; empty without classes."""
        return self.report.classes

    @property
    def confusion(self) -> ConfusionMatrix | MultilabelConfusion | None:
        """Which class is predicted as which; `confusion.matrix()` is (true, predicted). None without classes."""
        return self.report.confusion

    def plot(self, path: str | Path) -> Path:
        """Draw the confusion matrix (for several labels: bars) as a PNG, SVG or PDF, by the name of the file."""
        from regard.metrics.report_plot import save_report

        return _draw(path, partial(save_report, self.report, rows=self.rows))

    def plot_reliability(self, path: str | Path) -> Path:
        """Draw how often predictions are right, by their probability, as a PNG, SVG or PDF.

        Raises InputError where the answers have no probabilities.
        """
        from regard.metrics.reliability_plot import save_reliability

        if self.calibration is None:
            raise InputError(
                f"answers of a model for {self.task} have no probability of being right, so there is no plot."
            )
        return _draw(path, partial(save_reliability, self.calibration))

    def _repr_html_(self) -> str:
        values: dict[str, object] = {**scores_in_words(self.scores), self.unit: self.rows}
        if self.calibration is not None:
            values["calibration error"] = self.calibration.error
        if self.abstention is not None:
            limit = f"answered from confidence {self.abstention.below:g}"
            values[limit] = {"coverage": self.abstention.coverage.value, **scores_in_words(self.abstention.scores)}
        return html_summary(f"{self.task}: {self.folder or 'model'}", values)

    def json(self) -> dict[str, Any]:
        """Every field as JSON holds it; `classes`, `averages` and `confusion` where there are classes."""
        own = ("report", "calibration", "abstention")
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in own}
        plain["scores"] = {name: asdict(score) for name, score in self.scores.items()}
        if self.calibration is not None:
            plain["calibration"] = self.calibration.json()
        if self.abstention is not None:
            plain["abstention"] = self.abstention.json()
        return {**plain, **self.report.json()}


def _draw(path: str | Path, save: Callable[..., None]) -> Path:
    """Write a picture in the format of its name, completely or not at all."""
    from regard.metrics.report_plot import plot_format

    target = Path(path).expanduser()
    format = plot_format(target)
    check_output_path(target, "the picture")
    with atomic_path(target) as new_file:
        save(new_file, format=format)
    return target
