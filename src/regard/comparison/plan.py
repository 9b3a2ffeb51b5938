"""The jobs of a comparison, one after the other, and what is made of their results.

One model is in memory at a time. A model that fails is reported with its error, and the others go on.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from regard.comparison.caveats import majority_note, shortened_notes
from regard.comparison.curve import FRACTIONS, MIN_POINTS, learning_curve
from regard.comparison.groups import RowGroups, group_key, row_groups
from regard.comparison.pairs import ResampledModels, compare_tables, model_score
from regard.comparison.result import Comparison, LearningCurve, ModelResult
from regard.comparison.state import count_test_use
from regard.comparison.trainings.compared_data import OWN_FILE, ComparedData, words_per_sample
from regard.comparison.trainings.jobs import (
    FITTED_SETTINGS,
    Job,
    JobFolder,
    JobResult,
    is_fitted,
    run_job,
    scored_rows,
)
from regard.comparison.trainings.specs import LOADED, ModelSpec
from regard.comparison.verdict import cheapest_close, ranked, rule_of_thumb, summary
from regard.comparison.words import number
from regard.errors import InputError, RegardError, pluralize
from regard.metrics.confidence import Score
from regard.metrics.paired.resample import bootstrap_scores
from regard.metrics.paired.rows import RowTable
from regard.progress import OnProgress, Progress
from regard.tasks.classify import Classify
from regard.training.output.metrics_log import OnTrainingEvent

MANY_RESAMPLES, FEW_RESAMPLES = 10_000, 1000
ROWS_OF_MANY = 100_000  # test rows above which fewer resamples are drawn


@dataclass(frozen=True)
class ScoredModel:
    """A model with the results, the test rows and the scores of its seeds."""

    spec: ModelSpec
    results: tuple[JobResult, ...]
    tables: tuple[RowTable, ...]
    scores: Mapping[str, Score]  # of the first seed, from its meter


@dataclass(frozen=True)
class ComparisonPlan:
    """All that a comparison needs; see `regard.compare` for the fields."""

    data: ComparedData
    specs: tuple[ModelSpec, ...]
    folder: Path
    seeds: int = 1
    budget: float | None = None
    curve: bool = False
    metric: str | None = None
    settings: Mapping[str, Any] | None = None
    progress: OnProgress | None = None
    training: OnTrainingEvent | None = None

    def jobs(self) -> list[Job]:
        """Whole trainings first, seed by seed, then those of the learning curves."""
        jobs = [
            Job(spec, seed) for seed in range(self.seeds) for spec in self.specs if seed == 0 or spec.kind != LOADED
        ]
        if self.curve:
            trained = [spec for spec in self.specs if spec.kind != LOADED]
            jobs += [Job(spec, 0, fraction) for spec in trained for fraction in FRACTIONS]
        return jobs

    def run(self) -> Comparison:
        """Run the jobs that are left, and compare all models."""
        jobs = self.jobs()
        new = [job for job in jobs if JobFolder(self.folder, job).finished() is None]
        uses = count_test_use(self.folder, new_models=bool(new))
        results, errors = self._run_jobs(jobs, new)
        scored = [self._scored(spec, results) for spec in self.specs if spec.name not in errors]
        if not scored:
            name, error = next(iter(errors.items()))
            raise InputError(f"no model could be compared. {name}: {error}")
        groups = row_groups([group_key(record) for record in self.data.test])
        metric = self.metric or scored[0].tables[0].main
        tables = {one.spec.name: one.tables for one in scored}
        resamples = FEW_RESAMPLES if len(self.data.test) > ROWS_OF_MANY else MANY_RESAMPLES
        tested = compare_tables(
            tables,
            metric,
            groups=groups.numbers,
            reason=self._one_class(),
            resamples=resamples,
            varying=self._trained_once(),
        )
        models = [_model(one, metric, tested, groups) for one in scored]
        models += [
            ModelResult(spec.name, spec.kind, error=errors[spec.name]) for spec in self.specs if spec.name in errors
        ]
        curves = self._curves(results, tables, metric, groups) if self.curve else ()
        return self._comparison(models, tested, metric, groups, curves, uses, scored[0].tables[0])

    def _run_jobs(self, jobs: Sequence[Job], new: Sequence[Job]) -> tuple[dict[Job, JobResult], dict[str, str]]:
        """The results of all jobs, and an error for each model that has failed."""
        results: dict[Job, JobResult] = {}
        errors: dict[str, str] = {}
        seconds = self._share(jobs)
        for done, job in enumerate(jobs):
            if job.spec.name in errors:
                continue
            if job in new:
                self._report(done, len(jobs), job, "scoring" if job.spec.kind == LOADED else "training")
            try:
                results[job] = run_job(
                    job, self.data, self.folder, settings=self.settings or {}, seconds=seconds, training=self.training
                )
            except RegardError as error:
                if getattr(error, "signal", None) is not None:  # Ctrl-C or a termination stops the whole comparison
                    raise
                if job.fraction >= 1:
                    errors[job.spec.name] = error.with_flags
                self._report(done + 1, len(jobs), job, f"failed: {error}")
                continue
            gc.collect()
            self._report(done + 1, len(jobs), job, self._message(job, results[job], resumed=job not in new))
        return results, errors

    def _share(self, jobs: Sequence[Job]) -> float | None:
        """The seconds of each training; baselines that are fitted at once take few and are not counted."""
        trainings = [job for job in jobs if job.spec.kind != LOADED and not is_fitted(job.spec)]
        return None if self.budget is None else self.budget / max(len(trainings), 1)

    def _message(self, job: Job, result: JobResult, *, resumed: bool) -> str:
        meter, table = scored_rows(JobFolder(self.folder, job), result)
        metric = self.metric or meter.main
        score = f"{metric} {number(metric, table.value(metric))}"
        rows = "" if job.spec.kind == LOADED else f", {pluralize(result.rows, 'row')} in {result.train_seconds:.1f} s"
        return f"{score}{rows}{', from an earlier run' if resumed else ''}"

    def _report(self, done: int, total: int, job: Job, message: str) -> None:
        if self.progress is not None:
            values = {"model": job.spec.name, "seed": job.seed, "fraction": job.fraction, "message": message}
            self.progress(Progress("models", done, total, values))

    def _scored(self, spec: ModelSpec, results: Mapping[Job, JobResult]) -> ScoredModel:
        own = [(job, result) for job, result in results.items() if job.spec == spec and job.fraction >= 1]
        rows = [scored_rows(JobFolder(self.folder, job), result) for job, result in own]
        return ScoredModel(
            spec, tuple(result for _, result in own), tuple(table for _, table in rows), rows[0][0].scores()
        )

    def _trained_once(self) -> list[str]:
        """Models that would be others with another seed, and were trained with one."""
        trained = [spec.name for spec in self.specs if spec.kind != LOADED and not is_fitted(spec)]
        return trained if self.seeds == 1 else []

    def _one_label_per_text(self) -> bool:
        """Whether the rule of thumb, which is for the classification of texts, applies."""
        return self.data.task.name == Classify.name and self.data.task.label_style in ("single", "class")

    def _one_class(self) -> str | None:
        """Why test rows of one class allow no verdict."""
        strata = {record.stratum for record in self.data.test}
        if not isinstance(self.data.task, Classify) or len(strata) != 1:
            return None
        return f"all test rows have the label {next(iter(strata))}, so other labels are not tested"

    def _curves(
        self,
        results: Mapping[Job, JobResult],
        tables: Mapping[str, Sequence[RowTable]],
        metric: str,
        groups: RowGroups,
    ) -> tuple[LearningCurve, ...]:
        curves = []
        for spec in self.specs:
            parts = [job for job in results if job.spec == spec and job.fraction < 1]
            whole = next((results[job] for job in results if job.spec == spec and job.fraction >= 1), None)
            if whole is None or len(parts) + 1 < MIN_POINTS or spec.kind == LOADED:
                continue
            rows = [results[job].rows for job in parts] + [whole.rows]
            own = [scored_rows(JobFolder(self.folder, job), results[job])[1] for job in parts]
            curves.append(learning_curve(spec.name, rows, [*own, tables[spec.name][0]], metric, groups=groups.numbers))
        return tuple(curves)

    def _comparison(
        self,
        models: Sequence[ModelResult],
        tested: ResampledModels,
        metric: str,
        groups: RowGroups,
        curves: tuple[LearningCurve, ...],
        uses: int,
        table: RowTable,
    ) -> Comparison:
        higher = table.score(metric).higher_is_better
        order = ranked(models, metric, higher=higher)
        labeled = self.data.labeled
        words = words_per_sample(labeled.train)
        samples = len(labeled.train) + len(labeled.dev)
        return Comparison(
            task=labeled.task,
            metric=metric,
            rows=len(self.data.test),
            train_rows=len(labeled.train),
            dev_rows=len(labeled.dev),
            models=tuple(order),
            pairs=tested.pairs,
            verdict=summary(order, tested.pairs, metric, tested.reason),
            best=order[0].name,
            cheapest=cheapest_close(order, metric).name,
            rule_of_thumb=rule_of_thumb(samples, words, order, tested.pairs) if self._one_label_per_text() else None,
            data=labeled.reason,
            curves=curves,
            units=tested.units,
            higher_is_better=higher,
            seeds=self.seeds,
            test=self.data.test_source,
            test_uses=uses,
            notes=self._notes(metric, groups, uses),
            folder=str(self.folder),
        )

    def _notes(self, metric: str, groups: RowGroups, uses: int) -> tuple[str, ...]:
        notes = [*self.data.notes, *shortened_notes(self.folder, self.jobs())]
        if most_frequent := majority_note(self.data.test, metric):
            notes.append(most_frequent)
        if groups.note is not None:
            notes.append(groups.note)
        fitted = [spec.name for spec in self.specs if is_fitted(spec)]
        ignored = [name for name in self.settings or {} if name not in FITTED_SETTINGS]
        if fitted and ignored:
            notes.append(f"{', '.join(ignored)}: not for {' and '.join(fitted)}, fitted at once without training steps")
        if self._trained_once():
            notes.append("one seed: how much trainings vary is assumed in the verdicts; --seeds 3 measures it")
        if self.seeds == 2 and any(spec.kind != LOADED for spec in self.specs):
            notes.append("two seeds: how trainings vary is hardly known, so intervals are wide; use --seeds 3 or more")
        if uses > 1 and self.data.test_source == OWN_FILE:
            notes.append(f"the test rows were used {uses} times; the more often, the more the best score is luck")
        return tuple(notes)


def _model(one: ScoredModel, metric: str, tested: ResampledModels, groups: RowGroups) -> ModelResult:
    results = one.results
    memory = [result.memory_bytes for result in results if result.memory_bytes is not None]
    scores = {metric: tested.scores[one.spec.name], **_scores(one, metric, groups, tested.units)}
    return ModelResult(
        name=one.spec.name,
        kind=one.spec.kind,
        scores=scores,
        seeds=tuple(table.value(metric) for table in one.tables),
        parameters=results[0].parameters,
        train_seconds=round(fmean(result.train_seconds for result in results), 3),
        latency_ms=round(fmean(result.latency_ms for result in results), 4),
        texts_per_second=round(fmean(result.texts_per_second for result in results), 2),
        memory_bytes=max(memory) if memory else None,
        bytes=results[0].bytes,
        folder=results[0].folder,
        predictions=results[0].predictions,
    )


def _scores(one: ScoredModel, metric: str, groups: RowGroups, units: int) -> dict[str, Score]:
    """The other scores: of one seed as `regard evaluate` has them, else means with resampled intervals."""
    if len(one.tables) == 1 and groups.numbers is None:
        return {name: score for name, score in one.scores.items() if name != metric}
    result = {}
    for name in one.tables[0].scores:
        if name != metric:
            sampled = bootstrap_scores(one.tables, name, groups=groups.numbers, resamples=FEW_RESAMPLES)
            result[name] = model_score(one.tables, name, np.atleast_2d(sampled), units)
    return result
