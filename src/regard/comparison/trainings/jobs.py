"""One training and scoring of a comparison: a model, a seed and a part of the training rows.

What a job finds out is written to files when it ends, so that a killed comparison goes on with the jobs that are left:
`seed-0.json` has the numbers, `seed-0.rows.jsonl` what was predicted and what is right for every test row. Scores are
computed from these rows again, so that a resumed comparison ends with the same table.
"""

from __future__ import annotations

import gc
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from regard.baselines import BASELINES
from regard.checkpoint.files import read_json
from regard.comparison.labels import label_mapping, renamed
from regard.comparison.trainings.compared_data import ComparedData
from regard.comparison.trainings.measure import LATENCY_TEXTS, median_latency, peak_memory, reset_peak_memory
from regard.comparison.trainings.specs import BASELINE, LOADED, ModelSpec
from regard.comparison.trainings.time_budget import train_within
from regard.data.atomic import atomic_text_file
from regard.data.records import Record
from regard.digests import has_valid_digest, with_digest
from regard.metrics.meter import Meter
from regard.metrics.paired.rows import HasRows, RowTable, row_table
from regard.predict import Model, load
from regard.predict.model_task import read_training_run, task_for
from regard.predict.translation import translation_run
from regard.tasks import for_pairs, task_class
from regard.tasks.classify import Classify
from regard.tasks.inference import Answered, answer_records
from regard.tasks.task import Answer, Task
from regard.tasks.translate import Translate
from regard.training.output.metrics_log import OnTrainingEvent, TrainingEvent

FITTED_SETTINGS = ("seed", "device", "class_balance")  # that baselines without training steps take too


@dataclass(frozen=True)
class Job:
    """A model to train (or load) and score. `fraction` is the part of the training rows."""

    spec: ModelSpec
    seed: int = 0
    fraction: float = 1.0

    @property
    def name(self) -> str:
        """The name of its files."""
        part = "" if self.fraction >= 1 else f"-part-{round(1 / self.fraction)}"
        return f"seed-{self.seed}{part}"


@dataclass(frozen=True)
class JobResult:
    """What a job measured; `task` and `settings` are those of the model's task, which a meter is made from."""

    task: str
    settings: Mapping[str, Any]
    rows: int  # training rows
    train_seconds: float
    latency_ms: float
    texts_per_second: float
    memory_bytes: int | None
    bytes: int
    parameters: int
    folder: str | None
    predictions: str | None


@dataclass(frozen=True)
class JobFolder:
    """The files of one job inside the folder of a comparison."""

    root: Path
    job: Job

    @property
    def folder(self) -> Path:
        """All files of the model."""
        return self.root / "models" / self.job.spec.slug

    @property
    def model(self) -> Path:
        """The trained model."""
        return self.folder / f"{self.job.spec.slug}-{self.job.name}"

    @property
    def result(self) -> Path:
        return self.folder / f"{self.job.name}.json"

    @property
    def rows(self) -> Path:
        return self.folder / f"{self.job.name}.rows.jsonl"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions" / f"{self.job.spec.slug}-{self.job.name}.jsonl"

    def finished(self) -> JobResult | None:
        """The result of a job that has ended; None if it has not."""
        if not self.result.exists() or not self.rows.exists():
            return None
        values = read_json(self.result.parent, self.result.name)
        if not has_valid_digest(values):
            return None
        values.pop("digest")
        return JobResult(**values)

    def read_rows(self) -> Iterator[list[Any]]:
        """The arguments of the meter for each test row of a finished job."""
        with self.rows.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)

    def write(self, result: JobResult) -> None:
        content = json.dumps(with_digest(asdict(result)), indent=2, sort_keys=True, ensure_ascii=False)
        with atomic_text_file(self.result) as file:
            file.write(content + "\n")


def run_job(
    job: Job,
    data: ComparedData,
    root: Path,
    *,
    settings: Mapping[str, Any],
    seconds: float | None = None,
    training: OnTrainingEvent | None = None,
) -> JobResult:
    """Train or load the model, score it on the test rows and measure it; the result of an earlier run if there is one.

    seconds: time budget of the training.
    """
    files = JobFolder(root, job)
    finished = files.finished()
    if finished is not None:
        return finished
    files.folder.mkdir(parents=True, exist_ok=True)
    reset_peak_memory()
    rows, train_seconds, source = 0, 0.0, job.spec.start
    if job.spec.kind != LOADED:
        labeled = data.part(job.fraction)
        rows, source = len(labeled.train), str(files.model)
        train_seconds = train_within(
            seconds,
            files.model,
            labeled,
            preset=job.spec.preset,
            start=job.spec.start,
            training=training,
            settings=_settings(job, settings),
        )
    result = _score(load(source or "", device=settings.get("device", "auto")), files, data, training)
    gc.collect()
    if job.fraction < 1:
        shutil.rmtree(files.model, ignore_errors=True)
    result = replace(
        result,
        rows=rows,
        train_seconds=round(train_seconds, 3),
        folder=None if job.fraction < 1 else source,
        memory_bytes=peak_memory(),
    )
    files.write(result)
    return result


def is_fitted(spec: ModelSpec) -> bool:
    """Whether this is a baseline that is fitted at once, without training steps."""
    return spec.kind == BASELINE and BASELINES[spec.preset or ""].fitted


def _settings(job: Job, settings: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {**settings, "seed": job.seed}
    return {name: value for name, value in chosen.items() if name in FITTED_SETTINGS} if is_fitted(job.spec) else chosen


def _score(model: Model, files: JobFolder, data: ComparedData, training: OnTrainingEvent | None) -> JobResult:
    """Answer the test rows, and write what was predicted."""
    task = _task(model, data)
    scoring, mapping = data.task, None
    if isinstance(task, Classify) and isinstance(scoring, Classify):
        if files.job.spec.kind == LOADED and task.names:
            mapping = label_mapping(task.names, scoring.names, model=files.job.spec.name, where="the data")
        scoring = replace(task, names=scoring.names)
    else:
        scoring = task
    answers = answer_function(model, task)
    list(answers(data.test[:64]))  # the first batch is slower
    started = time.perf_counter()
    scored = answers(data.test, on_batch=on_test_progress(training, "scoring", len(data.test), "rows"))
    answered = [(record, renamed(answer, mapping)) for record, answer in scored]
    seconds = time.perf_counter() - started
    timed = on_test_progress(training, "timing", min(len(data.test), LATENCY_TEXTS), "texts")
    latency = median_latency(lambda record: list(answers([record])), data.test, on_item=timed)
    _write_rows(files, scoring, answered)
    about = model.info()
    return JobResult(
        task=scoring.name,
        settings=scoring.settings(),
        rows=0,
        train_seconds=0.0,
        latency_ms=round(latency, 4),
        texts_per_second=round(len(answered) / max(seconds, 1e-9), 2),
        memory_bytes=None,
        bytes=about.bytes,
        parameters=about.parameters,
        folder=None,
        predictions=str(files.predictions),
    )


def _task(model: Model, data: ComparedData) -> Task:
    task = task_for(model.checkpoint, model.folder)
    if data.task.name == task.pair_task and read_training_run(model.folder) is None:
        return for_pairs(task)
    return task


def on_test_progress(
    training: OnTrainingEvent | None, what: str, total: int, unit: str
) -> Callable[[int], None] | None:
    """A function that reports how much of the work after a training is done, such as "scoring" of "rows"."""
    if training is None:
        return None
    values = {"what": what, "unit": unit}
    training(TrainingEvent("test", 0, total, values))
    return lambda done: training(TrainingEvent("test", done, total, values))


class AnswerRecords(Protocol):
    """A function that answers records; `on_batch` is called with the number of records that are done."""

    def __call__(self, records: Sequence[Record], *, on_batch: Callable[[int], None] | None = None) -> Answered: ...


def answer_function(model: Model, task: Task) -> AnswerRecords:
    """A function that answers records."""
    run = translation_run(model, task, {})[0] if isinstance(task, Translate) else model.task_runner(task)
    preprocessing = model.preprocessing()
    labeled = not isinstance(task, Classify)  # a label that a model does not know is no error here, but wrong

    def answers(records: Sequence[Record], *, on_batch: Callable[[int], None] | None = None) -> Answered:
        options: dict[str, Any] = {"device": model.device, "labeled": labeled, "on_batch": on_batch}
        return answer_records(task, run, records, preprocessing, **options)

    return answers


def _write_rows(files: JobFolder, task: Task, answered: Sequence[tuple[Record, Answer]]) -> None:
    """The answers for people, and the arguments of the meter for a resumed comparison."""
    files.predictions.parent.mkdir(parents=True, exist_ok=True)
    meter = task.meter()
    added: list[list[Any]] = []
    add = meter.add

    def recording(*values: Any) -> None:
        added.append(list(values))
        add(*values)

    meter.add = recording  # type: ignore[method-assign]  # tasks check the class of the meter, so it cannot be wrapped
    with atomic_text_file(files.predictions) as file:
        for record, answer in answered:
            task.update(meter, answer, record)
            gold = getattr(record, "label", record.annotation)
            line = {**dict(record.texts), "gold": gold, **answer.json()}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    with atomic_text_file(files.rows) as file:
        file.writelines(json.dumps(values, ensure_ascii=False) + "\n" for values in added)


def scored_rows(files: JobFolder, result: JobResult) -> tuple[Meter, RowTable]:
    """The meter with the test rows of a finished job, and their numbers."""
    meter = task_class(result.task).from_settings(result.settings).meter()
    if isinstance(meter, HasRows):
        meter.keep_rows()
    for values in files.read_rows():
        meter.add(*values)
    return meter, row_table(meter)
