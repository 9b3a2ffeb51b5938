"""The facts about a training that its report and its model card are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.checkpoint.families import family_for
from regard.checkpoint.family import Family
from regard.checkpoint.folder import Checkpoint
from regard.errors import pluralize
from regard.metrics.calibration import Calibration
from regard.metrics.report import ClassificationReport
from regard.report.row_facts import RowFacts
from regard.tasks import task_class
from regard.tasks.task import Task


@dataclass(frozen=True)
class RunFacts:
    """All that is known about a training at its end.

    run: the content of run.json. events: the lines of metrics.jsonl. calibration: of the validation rows with the
    temperature that was fitted to them, uncalibrated: without it.
    """

    run: Mapping[str, Any]
    family: Family
    parameters: int
    name: str = "model"  # of the folder
    labels: tuple[str, ...] | None = None
    events: Sequence[Mapping[str, Any]] = ()
    report: ClassificationReport = field(default_factory=ClassificationReport)
    calibration: Calibration | None = None
    uncalibrated: Calibration | None = None
    rows: RowFacts = field(default_factory=RowFacts)

    @classmethod
    def of(cls, checkpoint: Checkpoint, run: Mapping[str, Any], **more: Any) -> RunFacts:
        """The facts about a network with the run that trained it. `more` are further fields."""
        return cls(
            run=run,
            family=family_for(checkpoint.family, checkpoint.config),
            parameters=sum(parameter.numel() for parameter in checkpoint.network.parameters()),
            labels=checkpoint.labels,
            **more,
        )

    @property
    def task(self) -> type[Task]:
        """The class of its task."""
        return task_class(self.run["task"])

    @property
    def tuned_task(self) -> Task:
        """The task with what was tuned, such as a threshold."""
        return self.task.from_settings(self.run["task_settings"])

    @property
    def title(self) -> str:
        """What the model is, such as "BERT text classifier, fine-tuned from minilm"."""
        if self.run.get("preset") is not None:
            return f"{self.family.title or self.family.name} {self.task.title}, the baseline {self.run['start']}"
        return model_title(self.family, self.task, self.run["start"], pretrained=self.run["pretrained"])

    @property
    def opens_in_transformers(self) -> bool:
        """Whether transformers' `from_pretrained` opens the folder."""
        return self.family.in_transformers and self.task.in_transformers

    @property
    def baseline(self) -> tuple[str, float] | None:
        """The most frequent class of the validation rows and its fraction, where each row has one class."""
        classes = self.report.classes
        rows = sum(score.support for score in classes.values())
        if self.report.unit != "class" or not rows:
            return None
        name = max(classes, key=lambda one: classes[one].support)
        return name, classes[name].support / rows


def scored_rows(run: Mapping[str, Any]) -> str:
    """The rows that the scores are from, such as "200 validation rows split off from the training data"."""
    rows = f"{run['data']['dev_rows']:,}"
    folds = run.get("cross_validation")
    if folds is not None:
        others = pluralize(len(folds["folds"]) - 1, "fold")
        return f"{rows} rows by cross-validation: each by a model that was trained on the other {others}"
    if "search" in run:
        return f"{rows} test rows that no trial of the search has seen"
    source = "split off from the training data" if run["data"]["dev_split_off"] else "from data of their own"
    return f"{rows} validation rows {source}"


def model_title(family: Family, task: type[Task], start: str, *, pretrained: bool) -> str:
    """What a model is, in words."""
    name = family.title or family.name
    if not pretrained:
        return f"{name} {task.title}, trained from scratch ({start})"
    how = "further pretrained" if task.language_model else "fine-tuned"
    return f"{name} {task.title}, {how} from {start}"


def initial_seconds(run: Mapping[str, Any]) -> float:
    """How long it took to set the weights before the first step, on the training rows and then on all rows."""
    seconds: float = run.get("initialization", {}).get("seconds", 0.0) + run.get("refit", {}).get("seconds", 0.0)
    return seconds
