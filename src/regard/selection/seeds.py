"""Several seeds within a time, as one model: the mean of their weights.

Small data sets give other scores with every seed. The default settings are trained with several seeds, from the same
initial weights, and the mean of their weights is scored on the validation rows. No seed is chosen by these rows, so the
score is as honest as that of a single training. If there is time, the same seeds are trained once more on all rows, and
the mean of those is what is written.
"""

from __future__ import annotations

import shutil
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from regard.baselines import BASELINES
from regard.checkpoint.files import read_json
from regard.checkpoint.manifest import RUN
from regard.comparison.state import open_folder
from regard.comparison.trainings.time_budget import parse_duration, read_shortened, train_within
from regard.display import html_summary
from regard.errors import InputError, setting
from regard.metrics.confidence import Score, scores_in_words
from regard.progress import OnProgress, Progress
from regard.selection.run_notes import add_to_run, final_begun, mark_final
from regard.tasks import task_class
from regard.training.head_init.mean_weights import MeanWeights
from regard.training.head_init.similarity import shared_similarity
from regard.training.load_data import LabeledData, Where, fingerprint, load_data
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.result import TrainResult
from regard.training.resume.lock import claim
from regard.training.settings import Settings, TrainSettings
from regard.training.train import train

MAX_SEEDS = 5
RESERVE = 0.5  # for scoring and writing the mean, as a multiple of the longest training
MARGIN = 1.1  # of the longest training, for the next one


class SeedRun(NamedTuple):
    """A training with a seed, and its score on the validation rows."""

    seed: int
    score: float | None
    seconds: float


@dataclass(frozen=True)
class SeedsResult:
    """The mean of several trainings, and the scores of each on the validation rows."""

    task: str
    metric: str | None  # the main score; None without validation rows
    seeds: tuple[SeedRun, ...]
    used: tuple[int, ...]  # the seeds whose mean is written
    scores: dict[str, Score]  # of their mean, on the validation rows
    rows: int  # that the written model was trained on
    dev_rows: int
    folder: str
    seconds: float = 0.0
    ended: str = ""  # why no further seed was trained

    def json(self) -> dict[str, Any]:
        """The result as a plain dict."""
        return {**asdict(self), "seeds": [run._asdict() for run in self.seeds]}

    def _repr_html_(self) -> str:
        values = {**scores_in_words(self.scores), "seeds": len(self.used), "rows": self.rows}
        return html_summary(f"{self.task}: {self.folder}", values)


def train_seeds(
    data: Where,
    *,
    time: str | float,
    out: str | Path,
    seeds: int = MAX_SEEDS,
    dev: Where | None = None,
    start: str | Path | None = None,
    preset: str | None = None,
    task: str | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
    training: OnTrainingEvent | None = None,
    reading: Mapping[str, Any] | None = None,
    **settings: Unpack[TrainSettings],
) -> SeedsResult:
    """Train with as many seeds as the time is enough for, and write the mean of their weights.

    What was stopped or killed goes on when it is called again; its files are in a folder beside `out`.

    data, dev, start, preset, task, settings: as for `regard.train`.
    time: for everything, such as "5m"; a first training that would take longer has fewer steps.
    seeds: maximum number of seeds, counted from the seed of the settings.
    reading: format, columns, encoding and labels, as for `regard.train`.
    progress: called with `Progress("seeds", done, total)`. training: called with the events of each training.

    Example: `regard.train_seeds("reviews.csv", time="5m", out="runs/reviews").scores`.
    """
    started = clock.monotonic()
    user_settings = Settings.of(settings)
    budget = parse_duration(time)
    assert budget is not None
    _check(seeds, preset, user_settings)
    folder = Path(out).expanduser()
    work = folder.with_name(f"{folder.name}.seeds")
    replaced = overwrite or final_begun(work)
    claim(folder, resume=False, overwrite=replaced, resumable=False)
    fraction = user_settings.dev_fraction
    records = load_data(data, dev=dev, task=task, dev_fraction=fraction, seed=user_settings.seed, **(reading or {}))
    model = {"start": None if start is None else str(start), "preset": preset}
    runs = _SeedRuns(records, work, model, dict(settings), user_settings.seed, started + budget, training)
    runs.open(overwrite=overwrite)
    with shared_similarity():
        done = runs.train(seeds, progress)
        ended = runs.ended(done, seeds)
        result = runs.write(folder, done, progress, overwrite=replaced)
    if len(result.used) < len(result.seeds):
        ended += "; the mean of the seeds scored worse than each of them, so the best one is written"
    result = replace(result, seconds=round(clock.monotonic() - started, 3), ended=ended)
    names = ("metric", "seeds", "used", "seconds", "ended")
    add_to_run(folder, "seeds", {name: value for name, value in result.json().items() if name in names})
    shutil.rmtree(work)
    return result


def seeds_in_time(done: Sequence[float], left: float, *, most: int, refit: bool) -> tuple[int, bool]:
    """How many seeds there are in all, and whether the time is enough to train them on all rows too.

    done: seconds of the trainings so far. left: seconds left.
    """
    longest = max(done)
    more = max(0, int((left - RESERVE * longest) / (MARGIN * longest)))
    trainings = len(done) + more
    if refit and trainings >= 4:
        return max(min(most, trainings // 2), len(done)), True
    return min(most, trainings), False


def _check(seeds: int, preset: str | None, settings: Settings) -> None:
    if seeds < 1:
        raise InputError(f"{setting('seeds')} is {seeds}, expected at least 1.")
    baseline = BASELINES.get(preset or "")
    if baseline is not None and baseline.fitted:
        raise InputError(
            f"{setting('time')} was given, but the baseline {preset} is fitted at once, with the same result for every "
            "seed. Leave it out."
        )
    if settings.lora.rank:
        raise InputError(f"{setting('time')} and {setting('lora.rank')} were given; weights of LoRA are not averaged.")


@dataclass(frozen=True)
class _SeedRuns:
    data: LabeledData
    work: Path
    model: Mapping[str, Any]
    settings: Mapping[str, Any]
    seed: int
    deadline: float
    training: OnTrainingEvent | None

    def open(self, *, overwrite: bool) -> None:
        """Create the folder for the files, or go on with what was stopped there."""
        names = {name: str(value) for name, value in (*self.model.items(), *self.settings.items())}
        if overwrite:
            shutil.rmtree(self.work, ignore_errors=True)
        open_folder(self.work, {"data": self.data.fingerprint, "settings": names}, overwrite=overwrite)

    def train(self, most: int, progress: OnProgress | None) -> list[SeedRun]:
        """Train one seed after the other on the training rows, as long as there is time."""
        done: list[SeedRun] = []
        planned = 1
        while len(done) < planned:
            self._report(progress, f"training {len(done) + 1}" + (f" of {planned}" if done else ""), done, planned)
            folder = self.work / f"seed-{len(done)}"
            seconds = self._train(folder, self.data, self.seed + len(done), first=not done)
            run = read_json(folder, RUN)
            score = run["scores"][run["main"]]["value"] if run["main"] else None
            done.append(SeedRun(self.seed + len(done), score, seconds))
            if not run["done"]["steps"]:  # fitted without training steps: the same for every seed
                break
            planned, _ = self._plan(done, most)
        return done

    def ended(self, done: Sequence[SeedRun], most: int) -> str:
        """Why no further seed is trained, in words."""
        if not (run := read_json(self.work / "seed-0", RUN))["done"]["steps"]:
            if "contrastive" in run:
                return "weights of several seeds are not averaged if a linear probe follows contrastive training"
            return "there were no training steps, so that every seed gives the same weights"
        if len(done) == most:
            return f"at most {most} seeds are trained"
        needed = (MARGIN + RESERVE) * max(run.seconds for run in done)
        left = max(self.deadline - clock.monotonic(), 0.0)
        return f"another seed would need {_clock(needed)} with its scores, and {_clock(left)} were left"

    def write(
        self, folder: Path, done: Sequence[SeedRun], progress: OnProgress | None, *, overwrite: bool
    ) -> SeedsResult:
        """Write the mean of the seeds; if it is worse than each of them, the best one."""
        numbers = list(range(len(done)))
        if len(done) > 1 and self.data.dev and not self._mean_helps(done):
            numbers = [max(numbers, key=lambda number: self._sign * (done[number].score or 0.0))]
        used = [done[number] for number in numbers]
        _, refit = self._plan(done, len(done))
        mean = MeanWeights([self.work / f"seed-{number}" for number in numbers])
        rows = len(self.data.train)
        if refit:
            records = [*self.data.train, *self.data.dev]
            whole = replace(self.data, train=records, dev=[], split_off=False, fingerprint=fingerprint(records, []))
            for count, number in enumerate(numbers):
                self._report(progress, f"all rows, training {count + 1} of {len(numbers)}", done, len(done))
                self._train(self.work / f"all-{number}", whole, self.seed + number)
            mean = replace(mean, all_rows=[self.work / f"all-{number}" for number in numbers])
            rows = len(records)
        mark_final(self.work)
        written = self._mean(folder, mean, overwrite=overwrite)
        metric = read_json(folder, RUN)["main"]
        return SeedsResult(
            task=written.task,
            metric=metric,
            seeds=tuple(done),
            used=tuple(run.seed for run in used),
            scores=written.scores,
            rows=rows,
            dev_rows=len(self.data.dev),
            folder=str(folder),
        )

    def _plan(self, done: Sequence[SeedRun], most: int) -> tuple[int, bool]:
        refit = bool(self.data.dev) and self.data.split_off and self.settings.get("refit") != "no"
        left, seconds = self.deadline - clock.monotonic(), [run.seconds for run in done]
        if not read_json(self.work / "seed-0", RUN)["done"]["steps"]:  # more seeds are not trained
            return 1, refit and seeds_in_time(seconds, left, most=2, refit=False)[0] > 1
        return seeds_in_time(seconds, left, most=most, refit=refit)

    def _mean_helps(self, done: Sequence[SeedRun]) -> bool:
        """Whether the mean is at least as good as the worst seed; else the seeds have gone different ways."""
        folder = self.work / "mean"
        shutil.rmtree(folder, ignore_errors=True)
        self._mean(folder, MeanWeights([self.work / f"seed-{number}" for number in range(len(done))]), overwrite=True)
        run = read_json(folder, RUN)
        scores = [one.score for one in done if one.score is not None]
        mean = run["scores"][run["main"]]["value"]
        return bool(self._sign * mean >= min(self._sign * score for score in scores))

    @property
    def _sign(self) -> int:
        """1 if a higher score is better, else -1."""
        task = task_class(self.data.task).from_records([*self.data.train, *self.data.dev])
        return 1 if task.meter().higher_is_better else -1

    def _train(self, folder: Path, data: LabeledData, seed: int, *, first: bool = False) -> float:
        left = max(self.deadline - clock.monotonic(), 1.0)
        options = {**self.settings, "seed": seed, "refit": "no", "initial_seed": self.seed}
        if not data.dev:
            options["dev_fraction"] = 0.0
        shortened = None if first else read_shortened(self.work / "seed-0")
        if shortened is not None:
            options = shortened.applied(options)
        limit = left / (1 + RESERVE) if first else None
        return train_within(limit, folder, data, **self.model, settings=options, training=self.training)

    def _mean(self, folder: Path, mean: MeanWeights, *, overwrite: bool) -> TrainResult:
        options: dict[str, Any] = {**self.settings, "refit": "no", "seed": self.seed}
        return train(self.data, out=folder, mean=mean, overwrite=overwrite, **self.model, **options)

    def _report(self, progress: OnProgress | None, what: str, done: Sequence[SeedRun], total: int) -> None:
        if progress is None:
            return
        left = max(self.deadline - clock.monotonic(), 0.0)
        message = f"{what}, {_clock(left)} left"
        scores = [run.score for run in done if run.score is not None]
        if scores:
            message += f", scores so far {', '.join(f'{score:.4f}' for score in scores)}"
        progress(Progress("seeds", len(done), total, {"message": message, "seconds_left": left}))


def _clock(seconds: float) -> str:
    """Such as "4:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
