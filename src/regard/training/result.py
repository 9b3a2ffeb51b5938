"""What a training returns, also when it is resumed after its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from regard.checkpoint.files import read_json
from regard.checkpoint.manifest import RUN
from regard.display import html_summary
from regard.errors import FolderError
from regard.metrics.confidence import Score, scores_in_words
from regard.training.resume.state import POSITION, STATE, differences

if TYPE_CHECKING:
    from regard.training.run import TrainedRun


@dataclass(frozen=True)
class TrainResult:
    """The scores of the best weights on the validation rows, with 95 % intervals, and what the training took."""

    task: str  # name of the task, such as "classify"
    rows: int  # training rows
    scores: dict[str, Score]  # by name, each with a 95 % interval; empty without validation rows
    seconds: float  # duration of the whole training
    folder: str  # the model folder
    steps: int  # optimizer steps
    tokens: int  # tokens trained on, over all epochs
    skipped: int  # steps skipped because loss or gradients were not finite
    stopped_early: bool  # whether `patience` ended the training
    tokens_per_second: float | None = None  # of all steps but the first, without compiling, scoring and saving
    repeats: int = 1  # trainings of as many steps each, whose weights are averaged
    validation_rows: int = 0  # rows that the scores are of
    refit: Literal["network", "head"] | None = None  # what was then trained on all rows, validation rows too

    def json(self) -> dict[str, Any]:
        """The result as a plain dict."""
        return asdict(self)

    def _repr_html_(self) -> str:
        values = {**scores_in_words(self.scores), "rows": self.rows, "steps": self.steps, "seconds": self.seconds}
        return html_summary(f"{self.task}: {self.folder}", values)

    @classmethod
    def of(cls, run: TrainedRun, **more: Any) -> Self:
        """The result of a run that has just ended."""
        return cls(
            task=run.task.name,
            rows=run.inputs.rows,
            scores={} if run.scores is None else run.scores.scores,
            seconds=run.seconds,
            folder=str(run.context.folder),
            steps=run.fitted.steps,
            tokens=run.fitted.tokens,
            skipped=run.fitted.skipped,
            stopped_early=run.fitted.stopped_early,
            tokens_per_second=run.fitted.tokens_per_second,
            repeats=run.fitted.repeats,
            validation_rows=len(run.inputs.data.dev),
            refit=_refit(run.details),
            **more,
        )

    @classmethod
    def of_finished(cls, folder: Path, identity: Mapping[str, Any]) -> Self | None:
        """The result of the training in the folder if it has ended; None if it has not.

        Raises FolderError if that training had another `identity`: other data or settings.
        """
        if (folder / STATE / POSITION).exists() or not (folder / RUN).exists():
            return None
        run = read_json(folder, RUN)
        try:
            _check_identity(folder, cls._stored_identity(run), identity)
            return cls._from_run(folder, run)
        except (KeyError, TypeError) as error:
            raise FolderError(f"{folder / RUN} is not what a training writes. Start over with --overwrite.") from error

    @classmethod
    def _stored_identity(cls, run: Mapping[str, Any]) -> dict[str, Any]:
        """What run.json says of the data and the settings, by the names of an identity."""
        stored = {name: run[name] for name in ("start", "task", "tokenizer")}
        return {**stored, "data": run["data"]["hash"], **run["settings"]}

    @classmethod
    def _from_run(cls, folder: Path, run: Mapping[str, Any], **more: Any) -> Self:
        done = run["done"]
        names = sorted(run["scores"], key=lambda name: name != run.get("main"))  # the main score first
        return cls(
            task=run["task"],
            rows=run.get("refit", {}).get("rows", run.get("sequences", run["data"]["train_rows"])),
            scores={name: Score(**run["scores"][name]) for name in names},
            seconds=run.get("seconds", done["seconds"]),
            folder=str(folder),
            steps=done["steps"],
            tokens=done["tokens"],
            skipped=done["skipped"],
            stopped_early=done["stopped_early"],
            tokens_per_second=done.get("tokens_per_second"),
            repeats=done.get("repeats", 1),
            validation_rows=run["data"]["dev_rows"],
            refit=_refit(run),
            **more,
        )


@dataclass(frozen=True)
class PretrainResult(TrainResult):
    """The result of a pretraining, with the scores of a unigram model on the same validation text."""

    baseline: dict[str, float] = field(default_factory=dict)
    new_heads: tuple[str, ...] = ()  # heads that the model to start from did not have, randomly initialized

    @classmethod
    def of(cls, run: TrainedRun, **more: Any) -> Self:
        return super().of(run, baseline=run.details["baseline"], new_heads=tuple(run.details["new_heads"]), **more)

    @classmethod
    def _stored_identity(cls, run: Mapping[str, Any]) -> dict[str, Any]:
        own = {name: run[name] for name in ("objective", "average")}
        return {**super()._stored_identity(run), **own, "task": run["task_settings"]}

    @classmethod
    def _from_run(cls, folder: Path, run: Mapping[str, Any], **more: Any) -> Self:
        return super()._from_run(folder, run, baseline=run["baseline"], new_heads=tuple(run["new_heads"]), **more)


def _refit(run: Mapping[str, Any]) -> Literal["network", "head"] | None:
    """What was trained on all rows, from the fields of run.json."""
    if "refit" not in run:
        return None
    return "head" if run["refit"].get("head_only") else "network"


def _check_identity(folder: Path, stored: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse to resume a finished training with other data or settings."""
    if changed := differences(stored, identity):
        raise FolderError(
            f"{folder} cannot be resumed: its training ended, and nothing is left to resume; it had other settings "
            f"or data ({changed}). Begin again with --overwrite, or name a new folder."
        )
