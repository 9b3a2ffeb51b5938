"""k-fold cross-validation: every row is scored once, by a model that was not trained on it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from regard.baselines import is_baseline
from regard.comparison.state import open_folder
from regard.comparison.trainings.compared_data import ComparedData
from regard.comparison.trainings.jobs import Job, JobFolder, run_job, scored_rows
from regard.comparison.trainings.specs import BASELINE, FINE_TUNED, SCRATCH, ModelSpec
from regard.data.records import Record
from regard.data.splits import split_records
from regard.display import html_summary
from regard.errors import InputError, pluralize, setting
from regard.metrics.confidence import Score, scores_in_words
from regard.metrics.meter import Meter
from regard.progress import OnProgress, Progress
from regard.selection.fold_report import add_fold_scores
from regard.selection.run_notes import final_begun, mark_final
from regard.tasks import task_class
from regard.training.load_data import LabeledData, Where, fingerprint, load_data
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.resume.lock import claim
from regard.training.settings import Settings, TrainSettings
from regard.training.train import train

LEFT_OUT = "left-out fold"


@dataclass(frozen=True)
class CrossValidation:
    """Scores of all rows together, each from the fold that it was left out of, and the scores of each fold."""

    task: str  # name of the task, such as "classify"
    rows: int  # rows that were scored
    scores: dict[str, Score]  # by name, each with a 95 % interval
    main: str  # name of the score that matters most
    folds: tuple[dict[str, float], ...]  # scores of each fold
    seconds: float
    folder: str  # the model, trained on all rows

    def json(self) -> dict[str, Any]:
        """The result as a plain dict."""
        return asdict(self)

    def _repr_html_(self) -> str:
        values = {**scores_in_words(self.scores), "rows": self.rows, "folds": len(self.folds)}
        return html_summary(f"{self.task}: {self.folder}", values)


def cross_validate(
    data: Where,
    *,
    out: str | Path,
    folds: int = 5,
    start: str | Path | None = None,
    preset: str | None = None,
    task: str | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
    training: OnTrainingEvent | None = None,
    reading: Mapping[str, Any] | None = None,
    **settings: Unpack[TrainSettings],
) -> CrossValidation:
    """Train on all folds but one and score that one, for each fold; then train on all rows and write that model.

    Neither the models of the folds nor the final one have validation rows: no epoch is chosen, so that all are trained
    in the same way. Folds have the same fraction of every label, and rows of one group stay in one fold. A run that was
    killed goes on with the folds that are left, in a folder beside `out`.

    data, start, preset, task, settings: as for `regard.train`. folds: at least 2.
    reading: format, columns, encoding and labels, as for `regard.train`.
    progress: called with `Progress("folds", done, total)`. training: called with the events of each training.

    Example: `regard.cross_validate("reviews.csv", folds=5, out="runs/reviews").scores`.
    """
    started = time.monotonic()
    user_settings = Settings.of(settings)
    _check(user_settings)
    folder = Path(out).expanduser()
    work = folder.with_name(f"{folder.name}.folds")
    resume = final_begun(work) and not overwrite
    claim(folder, resume=resume, overwrite=overwrite, resumable=False)
    labeled = load_data(data, task=task, dev_fraction=0, seed=user_settings.seed, **(reading or {}))
    records = [*labeled.train, *labeled.dev]
    labeled = replace(labeled, train=records, dev=[], split_off=False, fingerprint=fingerprint(records, []))
    fixed: dict[str, Any] = {**settings, "dev_fraction": 0.0}
    plan = _FoldPlan(labeled, _spec(start, preset), folds, work, user_settings.seed, fixed)
    plan.open(overwrite=overwrite)
    fold_scores, meter = plan.run(progress, training)
    mark_final(work)
    options: dict[str, Any] = {"start": start, "preset": preset, "resume": resume, "overwrite": overwrite}
    final = train(labeled, out=folder, progress=training, **options, **fixed)
    scores = meter.scores()
    add_fold_scores(folder, meter, fold_scores)
    shutil.rmtree(work)
    return CrossValidation(
        task=final.task,
        rows=meter.rows,
        scores=scores,
        main=meter.main,
        folds=tuple(fold_scores),
        seconds=round(time.monotonic() - started, 3),
        folder=str(folder),
    )


@dataclass(frozen=True)
class _FoldPlan:
    """The trainings of a cross-validation, with their files in the folder `work`."""

    labeled: LabeledData
    spec: ModelSpec
    folds: int
    work: Path
    seed: int
    settings: Mapping[str, Any]

    def open(self, *, overwrite: bool) -> None:
        """Create the folder for the files, or go on with the same cross-validation that was stopped there."""
        settings = {name: value for name, value in self.settings.items() if name != "device"}
        identity = {
            "data": self.labeled.fingerprint,
            "folds": self.folds,
            "model": asdict(self.spec),
            "settings": settings,
        }
        open_folder(self.work, identity, overwrite=overwrite)

    def run(
        self, progress: OnProgress | None, training: OnTrainingEvent | None
    ) -> tuple[list[dict[str, float]], Meter]:
        """The scores of each fold, and a meter with the rows of all."""
        records = self.labeled.train
        scores = []
        meter: Meter | None = None
        for number, rows in enumerate(split_folds(records, self.folds, seed=self.seed), 1):
            self._report(progress, number - 1, f"fold {number} of {self.folds}")
            inside = set(rows)
            others = [record for row, record in enumerate(records) if row not in inside]
            fold = _fold_data(self.labeled, others, [records[row] for row in rows])
            files = JobFolder(self.work / str(number), Job(self.spec, self.seed))
            result = run_job(files.job, fold, files.root, settings=self.settings, training=training)
            shutil.rmtree(files.model, ignore_errors=True)
            own, _ = scored_rows(files, result)
            scores.append({name: score.value for name, score in own.scores().items()})
            meter = meter or task_class(result.task).from_settings(result.settings).meter()
            for values in files.read_rows():
                meter.add(*values)
        assert meter is not None
        self._report(progress, self.folds, f"final training on all {pluralize(len(records), 'row')}")
        return scores, meter

    def _report(self, progress: OnProgress | None, done: int, message: str) -> None:
        if progress is not None:
            progress(Progress("folds", done, self.folds, {"message": message}))


def _check(settings: Settings) -> None:
    options = {"dev_fraction": bool(settings.dev_fraction), "refit": settings.refit == "yes"}
    names = [name for name, is_given in options.items() if is_given]
    if names:
        raise InputError(
            f"{setting('folds')} and {setting(names[0])} were both given; with folds there is no other split."
        )


def split_folds(records: list[Record], folds: int, *, seed: int) -> list[list[int]]:
    """The rows of each fold."""
    if folds < 2:
        raise InputError(f"{setting('folds')} is {folds}, expected at least 2.")
    if folds > len(records):
        raise InputError(f"{setting('folds')} is {folds}, but there are {len(records)} rows; expected at most so many.")
    return list(split_records(records, {str(number): 1 / folds for number in range(folds)}, seed=seed).values())


def _spec(start: str | Path | None, preset: str | None) -> ModelSpec:
    if preset is not None:
        kind = BASELINE if is_baseline(preset) else SCRATCH
        return ModelSpec(preset, kind, preset=preset, start=None if start is None else str(start))
    return ModelSpec("model", FINE_TUNED, start=str(start or "minilm"))


def _fold_data(labeled: LabeledData, others: list[Record], left_out: list[Record]) -> ComparedData:
    data = replace(labeled, train=others, dev=[], split_off=False, fingerprint=fingerprint(others, []))
    scoring = task_class(labeled.task).from_records([*others, *left_out])
    return ComparedData(data, left_out, LEFT_OUT, scoring)
