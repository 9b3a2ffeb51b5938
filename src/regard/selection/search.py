"""A search for training settings, scored on validation rows; the result is scored on rows that chose nothing.

Optuna (https://arxiv.org/abs/1907.10902) proposes learning rate, epochs, batch size and dropout; the first trial has
the default settings. The best settings are trained once more, on training and validation rows together, and that model
is scored on a part of the data that no trial has seen.
"""

from __future__ import annotations

import json
import shutil
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from regard.baselines import BASELINES
from regard.comparison.state import open_folder
from regard.comparison.trainings.compared_data import ComparedData, load_compared_data
from regard.comparison.trainings.jobs import answer_function, on_test_progress
from regard.comparison.trainings.time_budget import (
    BudgetGuard,
    OverBudget,
    ShortenedTraining,
    SlowStart,
    parse_duration,
    report_shortened,
    shortened_by,
    with_steps,
)
from regard.display import html_summary
from regard.errors import InputError, MissingExtra, setting
from regard.metrics.confidence import Score, scores_in_words
from regard.metrics.meter import Meter
from regard.predict import load
from regard.predict.model_task import task_for
from regard.progress import OnProgress, Progress
from regard.selection.run_notes import add_to_run, final_begun, mark_final, write_pages
from regard.selection.trials import FINAL, Trial, best_trial, nothing_searched
from regard.tasks.inference import LossTotal, score_answers
from regard.training.head_init.similarity import shared_similarity
from regard.training.inputs.preview import choose_settings
from regard.training.load_data import LabeledData, Where, fingerprint
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.result import TrainResult
from regard.training.resume.lock import claim
from regard.training.settings import Settings, TrainSettings
from regard.training.train import train

TRIALS = "trials.jsonl"
LR_RANGE = 3.0  # the learning rate is searched from a third to three times the default
EPOCH_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the default number of epochs
BATCH_SIZES = (8, 16, 32, 64)
DROPOUTS = (0.0, 0.1, 0.2)
NO_VALIDATION = {"dev_fraction": 0.0, "refit": "no"}


@dataclass(frozen=True)
class SettingsSearch:
    """The settings with the best validation score, and the scores of the final model on rows that chose nothing."""

    task: str
    metric: str  # the score that the settings were chosen by
    settings: dict[str, Any]  # the best ones; the others are as chosen by default
    scores: dict[str, Score]  # of the final model, on the test rows
    rows: int  # that the final model was trained on
    test_rows: int
    folder: str
    trials: tuple[Trial, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # such as that the time was too short for a search

    def json(self) -> dict[str, Any]:
        """The result as a plain dict."""
        return {**asdict(self), "trials": [trial._asdict() for trial in self.trials]}

    def _repr_html_(self) -> str:
        values = {**scores_in_words(self.scores), "test rows": self.test_rows, "trials": len(self.trials)}
        values |= {"note": "; ".join(self.notes)} if self.notes else {}
        return html_summary(f"{self.task}: {self.folder}", {**values, **self.settings})


def search_settings(
    data: Where,
    *,
    time: str | float,
    out: str | Path,
    test: Where | None = None,
    dev: Where | None = None,
    start: str | Path | None = None,
    preset: str | None = None,
    task: str | None = None,
    trials: int | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
    training: OnTrainingEvent | None = None,
    reading: Mapping[str, Any] | None = None,
    **settings: Unpack[TrainSettings],
) -> SettingsSearch:
    """Search for settings until the time is up, train with the best ones, and score that model on other rows.

    A search that was killed goes on with its trials, in a folder beside `out`.

    data, dev, start, preset, task: as for `regard.train`. settings: those given here are not searched.
    time: for all trials and the final training, such as "30m"; trainings that would take too long have fewer steps.
    test: rows for the final score; a fifth of the data if not given.
    trials: maximum number of trials.
    reading: format, columns, encoding and labels, as for `regard.train`.
    progress: called with `Progress("trials", done, total)`. training: called with the events of each training.

    Example: `regard.search_settings("reviews.csv", time="30m", out="runs/reviews").settings`.
    """
    started = clock.monotonic()
    user_settings = Settings.of(settings)
    budget = parse_duration(time)
    assert budget is not None
    _optuna()
    _check_preset(preset)
    folder = Path(out).expanduser()
    replaced = overwrite or final_begun(folder.with_name(f"{folder.name}.search"))
    claim(folder, resume=False, overwrite=replaced, resumable=False)
    rows = load_compared_data(data, test=test, dev=dev, task=task, seed=user_settings.seed, **(reading or {}))
    search = _Search.of(rows, folder, {"start": start, "preset": preset}, dict(settings), seed=user_settings.seed)
    search.open(overwrite=overwrite)
    with shared_similarity():
        done = search.run(started + budget, trials, progress, training)
    best = best_trial(done, higher=search.higher)
    seconds = max(started + budget - clock.monotonic(), best.seconds)
    result, meter = search.train_final(folder, best, training, seconds=seconds, overwrite=replaced)
    result = replace(
        result, trials=tuple(done), seconds=round(clock.monotonic() - started, 3), notes=search.notes(done, trials)
    )
    names = ("metric", "settings", "trials", "scores", "test_rows", "notes")
    add_to_run(folder, "search", {name: value for name, value in result.json().items() if name in names})
    write_pages(folder, meter)
    shutil.rmtree(search.work)
    return result


def search_space(default: Settings, user_settings: Mapping[str, Any], *, rows: int) -> dict[str, Sequence[Any]]:
    """The values of each searched setting; of the learning rate its lowest and highest value."""
    assert default.lr is not None
    space: dict[str, Sequence[Any]] = {"lr": (default.lr / LR_RANGE, default.lr * LR_RANGE)}
    if default.epochs is not None:
        space["epochs"] = sorted({max(1, round(factor * default.epochs)) for factor in EPOCH_FACTORS})
    space["batch_size"] = [size for size in BATCH_SIZES if size <= max(rows // 4, BATCH_SIZES[0])]
    space["dropout"] = DROPOUTS
    fixed = set(user_settings)
    fixed |= {"epochs"} if "steps" in fixed else set()
    fixed |= {"batch_size"} if "batch_tokens" in fixed else set()
    open_settings = {name: values for name, values in space.items() if name not in fixed}
    if not open_settings:
        raise InputError(
            f"{setting('search')} was given with values for all settings that it searches: {', '.join(space)}. "
            "Leave some of them out."
        )
    return open_settings


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingExtra("searching for settings", "search") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass(frozen=True)
class _Search:
    data: ComparedData
    space: Mapping[str, Sequence[Any]]
    work: Path
    metric: str
    higher: bool
    model: Mapping[str, Any]
    settings: Mapping[str, Any]
    seed: int
    default_epochs: float | None = None

    @classmethod
    def of(
        cls, data: ComparedData, folder: Path, model: Mapping[str, Any], settings: Mapping[str, Any], *, seed: int
    ) -> _Search:
        """A search around the settings that are chosen by default. Its files are beside the folder of the result."""
        default = choose_settings(data.labeled, **model, **settings)
        meter = data.task.meter()
        return cls(
            data=data,
            space=search_space(default, settings, rows=len(data.labeled.train)),
            work=folder.with_name(f"{folder.name}.search"),
            metric=meter.main,
            higher=meter.higher_is_better,
            model=model,
            settings=settings,
            seed=seed,
            default_epochs=default.epochs,
        )

    def notes(self, trials: Sequence[Trial], max_trials: int | None) -> tuple[str, ...]:
        """What to know about these trials."""
        epochs = self.space.get("epochs", ())
        note = nothing_searched(trials, epochs=epochs, default_epochs=self.default_epochs, max_trials=max_trials)
        return () if note is None else (note,)

    def open(self, *, overwrite: bool) -> None:
        """Create the folder for the files, or go on with the same search that was stopped there."""
        names = {name: str(value) for name, value in (*self.model.items(), *self.settings.items())}
        open_folder(self.work, {**self.data.identity, "settings": names}, overwrite=overwrite)

    def run(
        self,
        deadline: float,
        max_trials: int | None,
        progress: OnProgress | None,
        training: OnTrainingEvent | None,
    ) -> list[Trial]:
        """Trials until the deadline, with time left for the final training."""
        optuna = _optuna()
        study = optuna.create_study(
            direction="maximize" if self.higher else "minimize", sampler=optuna.samplers.TPESampler(seed=self.seed)
        )
        done = self._stored()
        for trial in done:
            self._tell(study, trial)
        while max_trials is None or len(done) < max_trials:
            left = deadline - clock.monotonic()
            longest = max((trial.seconds for trial in done), default=0.0)
            if done and left < (1 + FINAL) * longest:
                break
            if progress is not None:
                scores = [trial.score for trial in done if trial.score is not None]
                message = f"trial {len(done) + 1}"
                if scores:
                    message += f", best {self.metric} {(max if self.higher else min)(scores):.4f}"
                progress(Progress("trials", len(done), max_trials, {"message": message, "seconds_left": left}))
            suggested = self._suggest(optuna, study, len(done))
            limit = left - FINAL * longest if done else left / (1 + FINAL)
            trial = self._try(len(done), suggested, limit, training)
            self._tell(study, trial)
            done.append(trial)
            with (self.work / TRIALS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(trial._asdict()) + "\n")
        return done

    def train_final(
        self, folder: Path, best: Trial, training: OnTrainingEvent | None, *, seconds: float, overwrite: bool
    ) -> tuple[SettingsSearch, Meter]:
        """Train with the best settings on training and validation rows, and score on the test rows."""
        labeled = self.data.labeled
        records = [*labeled.train, *labeled.dev]
        whole = replace(labeled, train=records, dev=[], split_off=False, fingerprint=fingerprint(records, []))
        options: dict[str, Any] = {**self.settings, **best.settings, **NO_VALIDATION}
        options = with_steps(options, options["steps"]) if "steps" in options else options  # of a shortened trial
        mark_final(self.work)
        _, over = self._train_within(seconds, whole, folder, options, training, overwrite=overwrite)
        model = load(folder, device=self.settings.get("device", "auto"))
        task = task_for(model.checkpoint, model.folder)
        on_batch = on_test_progress(training, "scoring", len(self.data.test), "rows")
        answered = answer_function(model, task)(self.data.test, on_batch=on_batch)
        scored = score_answers(task, answered, LossTotal())
        result = SettingsSearch(
            task=labeled.task,
            metric=self.metric,
            settings=best.settings if over is None else with_steps(best.settings, over.steps),
            scores=scored.scores,
            rows=len(records),
            test_rows=len(self.data.test),
            folder=str(folder),
        )
        return result, scored.meter

    def _distributions(self, optuna: Any) -> dict[str, Any]:
        kinds = optuna.distributions
        return {
            name: kinds.FloatDistribution(*values, log=True) if name == "lr" else kinds.CategoricalDistribution(values)
            for name, values in self.space.items()
        }

    def _suggest(self, optuna: Any, study: Any, number: int) -> dict[str, Any]:
        """The next settings; the first trial has the default ones."""
        return {} if number == 0 else dict(study.ask(self._distributions(optuna)).params)

    def _tell(self, study: Any, trial: Trial) -> None:
        """Let the sampler know a score. The first trial, with default settings, is not a point of the space."""
        if trial.number and trial.score is not None:
            optuna = _optuna()
            study.add_trial(
                optuna.trial.create_trial(
                    params=trial.settings, distributions=self._distributions(optuna), value=trial.score
                )
            )

    def _try(self, number: int, suggested: dict[str, Any], limit: float, training: OnTrainingEvent | None) -> Trial:
        """Train with these settings, and score on the validation rows. The first trial always has a score."""
        folder = self.work / f"trial-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        options: dict[str, Any] = {**self.settings, **suggested, "refit": "no"}
        started = clock.monotonic()
        score = full_seconds = None
        try:
            result, over = self._train_within(limit, self.data.labeled, folder, options, training, shorten=number == 0)
            score = result.scores[self.metric].value
            if over is not None:
                suggested = with_steps(suggested, over.steps)
                full_seconds = round(result.seconds * over.planned / over.steps, 3)
        except OverBudget:
            pass
        shutil.rmtree(folder, ignore_errors=True)
        return Trial(number, suggested, score, round(clock.monotonic() - started, 3), full_seconds)

    def _train_within(
        self,
        seconds: float,
        data: LabeledData,
        out: Path,
        options: Mapping[str, Any],
        training: OnTrainingEvent | None,
        *,
        overwrite: bool = False,
        shorten: bool = True,
    ) -> tuple[TrainResult, OverBudget | None]:
        """Train; a training that would take longer begins again with fewer steps, which are returned too.

        shorten: raise OverBudget instead if this is false.
        """
        started = clock.monotonic()
        guard = BudgetGuard(seconds, training, options)
        try:
            return train(data, out=out, overwrite=overwrite, progress=guard, **self.model, **options), None
        except SlowStart as slow:
            left = max(started + seconds - clock.monotonic(), 1.0)
            shortened = ShortenedTraining(None, None, seconds, without=slow.what)
            report_shortened(training, shortened)
            without = shortened.applied(options)
            return self._train_within(left, data, out, without, training, overwrite=True, shorten=shorten)
        except OverBudget as over:
            if not shorten:
                raise
            report_shortened(training, shortened_by(over, seconds))
            fewer = with_steps(options, over.steps)
            return train(data, out=out, overwrite=True, progress=training, **self.model, **fewer), over

    def _stored(self) -> list[Trial]:
        """The trials of a search that was stopped."""
        path = self.work / TRIALS
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Trial(**json.loads(line)) for line in lines if line.endswith("}")]


def _check_preset(preset: str | None) -> None:
    """Raise InputError for a baseline that has no settings to search for."""
    baseline = BASELINES.get(preset or "")
    if baseline is not None and baseline.fitted:
        raise InputError(
            f"{setting('search')} was given, but the baseline {preset} is fitted at once and has no settings to search "
            f"for. Leave it out, or use {setting('folds', 5)} for a score on all rows."
        )
