"""Train students of fine-tuned minilm on one GPU, all at once, within minutes: the stage `students` of compress.py.

Each set has a process that reads its rows; processes of that one train the teacher (unless its folder is there) and
then the students. Students are fitted to the teacher by least squares and get the training rows and rows that the
teacher labels: variants, and texts of another set where one fits. Steps are large, since those
of a small network are bound by launches. Each student is trained twice, the second time from the first and for
longer, so that there is a result if the machine is slower than it seemed. Everything ends before `--minutes` are over.
If the variable OUT is a folder, it gets SET-STUDENT.zip (the two best students of each set, see packed.py) and rows.zip
(results and rows of all).

Teachers that were trained before travel as small files:

    python benchmarks/packed.py pack runs/sst2 runs/agnews runs/conll --out packed         # here
    python benchmarks/packed.py unpack packed/*.zip --out runs                             # there, 30 MB
    python benchmarks/compress.py students DATA-FOLDER --out runs --sets sst2 agnews conll --minutes 8
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from packed import pack_half

import regard
from regard.comparison.trainings.compared_data import ComparedData
from regard.compression.candidates import CandidateSpec, Workshop, max_vocabulary
from regard.compression.measure import Measured, measure
from regard.compression.more_rows import variants, with_more_rows
from regard.compression.result import CandidateResult
from regard.compression.state import WorkFolder
from regard.compression.students.shapes import Shape
from regard.compression.teacher import Teacher
from regard.config import ModelConfig
from regard.data.readers import read
from regard.data.records import ClassifyRecord, Record, TagRecord
from regard.predict.load import load
from regard.predict.model_task import task_for

VARIANTS = {"classify": 60_000, "tag": 40_000}  # rows that the teacher labels, at most: variants of training rows
OTHERS = {"classify": 120_000, "tag": 60_000}  # texts of another set
OUT = Path(os.environ["OUT"]) if os.environ.get("OUT") else None
END_SECONDS = 45  # for scoring and packing
CONTEXT = multiprocessing.get_context("fork")  # rows are read once


@dataclass(frozen=True)
class Plan:
    """A student: its shape, and how it is trained. The last of its layers computes the mean if it classifies."""

    name: str
    shape: Shape | None  # None: a baseline of this name
    lr: float = 3e-4
    batch_size: int = 256
    context: int | None = None  # tokens around a sentence to tag; as the teacher if None


BASELINES = (Plan("static", None), Plan("ngram", None))
PLANS = {
    "sst2": (
        Plan("4x192", Shape(4, 192, 768)),
        Plan("3x256", Shape(3, 256, 768), 2.5e-4),
    ),
    "agnews": (Plan("4x192", Shape(4, 192, 768)), Plan("3x256", Shape(3, 256, 768), 2.5e-4), *BASELINES),
    "conll": (
        Plan("4x256", Shape(4, 256, 768), 3e-4, 128, context=0),
        Plan("4x256-context", Shape(4, 256, 768), 3e-4, 64),
    ),
}


@dataclass(frozen=True)
class Job:
    """What every process of a set needs."""

    name: str
    options: argparse.Namespace
    rows: ComparedData
    until: float  # monotonic clock
    keep: Callable[..., None]
    turn: Any  # a lock: teachers are trained one after the other, which is faster than all at once

    @property
    def teacher(self) -> Path:
        return Path(self.options.out) / self.name

    @property
    def work(self) -> WorkFolder:
        return WorkFolder(Path(self.options.out) / f"{self.name}-small.compress")


def train_students(
    options: argparse.Namespace, held_out: Callable[..., ComparedData], keep: Callable[..., None]
) -> None:
    """All sets at once; waits until the time is over at most."""
    until = time.monotonic() + 60 * options.minutes
    _start_mps()
    processes, turn = [], CONTEXT.Lock()
    for name in (name for name in options.sets if name in PLANS):
        process = CONTEXT.Process(target=_set, args=(name, options, until, held_out, keep, turn))
        process.start()
        processes.append(process)
    _join(processes, until)
    if OUT:
        _pack_rows(options)


def _start_mps() -> None:
    """Let kernels of several processes run at the same time, where the GPU can."""
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False, capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return


def _join(processes: list[Any], until: float) -> None:
    for process in processes:
        process.join(max(until - time.monotonic(), 0.1))
    for process in processes:
        if process.is_alive():
            process.terminate()


def _set(
    name: str,
    options: argparse.Namespace,
    until: float,
    held_out: Callable[..., ComparedData],
    keep: Callable[..., None],
    turn: Any,
) -> None:
    job = Job(name, options, held_out(name, options.data, options.rows), until, keep, turn)
    before = _call(_teacher, job, until - END_SECONDS)
    if not before:
        return
    students = [CONTEXT.Process(target=_guarded, args=(_student, job, plan)) for plan in PLANS[name]]
    for process in students:
        process.start()
    _join(students, until - END_SECONDS / 3)
    if OUT:
        _pack(job)


def _call(function: Callable[..., None], job: Job, until: float) -> bool:
    """Run in another process, since CUDA does not work after a fork; whether it ended well."""
    process = CONTEXT.Process(target=_guarded, args=(function, job))
    process.start()
    _join([process], until)
    process.join(1)
    return process.exitcode == 0


def _guarded(function: Callable[..., None], job: Job, *rest: Any) -> None:
    torch.set_num_threads(1 if job.options.rows else 2)
    try:
        function(job, *rest)
    except Exception as error:
        traceback.print_exc()
        about = str(rest[0].name) if rest else "teacher"
        job.keep(stage="students", set=job.name, model=about, error=f"{type(error).__name__}: {error!s:.300}")
        raise SystemExit(1) from error


def _teacher(job: Job) -> None:
    """Train the teacher if it is not there, score it, and store the rows that it labels."""
    started = time.monotonic()
    if not (job.teacher / "config.json").is_file():
        settings: dict[str, Any] = {"device": job.options.device} | ({} if job.options.rows is None else {"steps": 4})
        with job.turn:
            regard.train(job.rows.labeled, start="minilm", out=job.teacher, overwrite=True, **settings)
    teacher = _open_teacher(job)
    measured = measure(teacher.model, teacher.task, job.rows.labeled.dev, job.rows.test)
    _store(job, "teacher", measured, time.monotonic() - started)
    data = with_more_rows(job.rows.labeled, teacher, list(_unlabeled(job, teacher)))
    lines = [json.dumps(_plain(record)) for record in data.train[len(job.rows.labeled.train) :]]
    (job.work.path / "more.jsonl").write_text("\n".join(lines))
    teacher.soft_targets(teacher.task, *_examples(teacher, data.train))  # into the cache


def _examples(teacher: Teacher, records: list[Record]) -> tuple[Any, list[Record]]:
    return teacher.task.examples(records, teacher.model.preprocessing(), labeled=True), records


def _plain(record: Record) -> list[Any]:
    if isinstance(record, TagRecord):
        return [record.tokens, record.tags]
    assert isinstance(record, ClassifyRecord)
    return [record.text, record.label]


def _from_plain(values: list[Any]) -> Record:
    return TagRecord.from_tokens(*values) if isinstance(values[0], list) else ClassifyRecord(*values)


def _open_teacher(job: Job) -> Teacher:
    model = load(job.teacher, device=job.options.device, engine="torch")
    return Teacher(model, task_for(model.checkpoint, model.folder), job.work.teacher_cache)


def _unlabeled(job: Job, teacher: Teacher) -> Iterator[Record]:
    """Variants of the training rows, and texts of another set of the same kind: reviews, news."""
    task, small = job.rows.labeled.task, job.options.rows
    train = job.rows.labeled.train
    yield from variants(train, count=min(small or VARIANTS[task], 2 * len(train)))
    yield from islice(_other_texts(job), small or OTHERS[task])


def _other_texts(job: Job) -> Iterator[Record]:
    data = job.options.data
    if job.name == "sst2" and (data / "imdb/train.csv.gz").is_file():
        for record in read(data / "imdb/train.csv.gz", task="classify"):
            text = record.texts[0][1].replace("<br />", " ")
            for part in re.split(r"(?<=[.!?])\s+", text):
                words = re.findall(r"[\w'-]+|[^\w\s]", part.lower())
                if 3 <= len(words) <= 45:
                    yield ClassifyRecord(" ".join(words))
    if job.name == "conll" and (data / "ag_news/train.csv.gz").is_file():
        columns = {"text": "text", "label": "label"}
        for record in read(data / "ag_news/train.csv.gz", task="classify", columns=columns):
            for part in re.split(r"(?<=[.!?])\s+", record.texts[0][1]):
                words = re.findall(r"[\w'-]+|[^\w\s]", part)
                if 3 <= len(words) <= 50:
                    yield TagRecord.from_tokens(words, None)


def _student(job: Job, plan: Plan) -> None:
    teacher = _open_teacher(job)
    lines = (job.work.path / "more.jsonl").read_text().splitlines()
    labeled = job.rows.labeled
    data = replace(labeled, train=[*labeled.train, *(_from_plain(json.loads(line)) for line in lines)])
    if plan.shape is None:
        workshop = Workshop(teacher, data, {"device": job.options.device})
        spec = CandidateSpec(plan.name, "student", "baseline", preset=plan.name)
        _make(job, workshop, spec, 0.8)
        return
    size = plan.batch_size if job.options.rows is None else 4
    settings: dict[str, Any] = {"batch_size": size, "device": job.options.device}
    settings |= {"epochs": 200.0, "eval_every": 600, "log_every": 50} if job.options.rows is None else {"steps": 4}
    settings |= {} if plan.context is None else {"context": plan.context}
    config = teacher.model.config
    assert isinstance(config, ModelConfig)
    limit = max_vocabulary(plan.shape, config)
    spec = CandidateSpec(plan.name, "student", "student", shape=plan.shape, trim=True, max_tokens=limit)
    again = replace(spec, name=f"{plan.name}-again")
    workshop = Workshop(teacher, data, {**settings, "lr": plan.lr})
    _make(job, workshop, spec, 0.3)
    shutil.copytree(job.work.model(spec), job.work.folder(again.slug) / "start")
    if job.options.rows is None:  # as many steps as the time is enough for, by the speed of the first training
        done = json.loads((job.work.model(spec) / "run.json").read_text())["done"]
        left = job.until - END_SECONDS - time.monotonic()
        settings["steps"] = max(int(0.8 * left * done["steps"] / done["seconds"]), 100)
        del settings["epochs"]
    _make(job, replace(workshop, settings={**settings, "lr": 0.6 * plan.lr}), again, 0.9)


def _make(job: Job, workshop: Workshop, spec: CandidateSpec, part: float) -> None:
    """Train a student for a part of the time that is left, and score it."""
    left = job.until - END_SECONDS - time.monotonic()
    workshop.make(spec, job.work.model(spec), job.teacher, part * left)
    model = load(job.work.model(spec), device="cpu" if spec.preset else job.options.device, engine="torch")
    measured = measure(model, task_for(model.checkpoint, model.folder), job.rows.labeled.dev, job.rows.test)
    _store(job, spec.name, measured, workshop.seconds[spec.name])


def candidate_result(name: str, measured: Measured) -> CandidateResult:
    """What was measured, as `regard compress` stores it."""
    return CandidateResult(
        name,
        "student",
        scores=measured.scores,
        latency_ms=measured.latency_ms,
        texts_per_second=measured.texts_per_second,
        bytes=measured.bytes,
        parameters=measured.parameters,
    )


def _store(job: Job, name: str, measured: Measured, seconds: float) -> None:
    """Print the scores, and keep the rows for the stage floor."""
    result = replace(candidate_result(name, measured), train_seconds=round(seconds, 1))
    job.work.write(name, result, measured.dev, measured.test)
    (job.work.folder(name) / "dev.json").write_text(json.dumps(measured.dev.value(next(iter(measured.scores)))))
    values = {key: round(score.value, 4) for key, score in measured.scores.items()}
    dev = {key: round(measured.dev.value(key), 4) for key in values if key in measured.dev.scores}
    job.keep(
        stage="students",
        set=job.name,
        model=name,
        scores=values,
        dev=dev,
        parameters=measured.parameters,
        seconds=round(seconds, 1),
    )


def _pack(job: Job) -> None:
    """The two students that are best on the validation rows, one of each shape."""
    assert OUT is not None
    scores = {}
    for plan in PLANS[job.name]:
        folders = [job.work.folder(name) for name in (plan.name, f"{plan.name}-again")]
        stored = {
            folder: float((folder / "dev.json").read_text()) for folder in folders if (folder / "dev.json").exists()
        }
        if stored and plan.shape is not None:
            best = max(stored, key=stored.__getitem__)
            scores[best] = stored[best]
    for folder in sorted(scores, key=scores.__getitem__, reverse=True)[:2]:
        pack_half(folder / "model", OUT / f"{job.name}-{folder.name}.zip")


def _pack_rows(options: argparse.Namespace) -> None:
    assert OUT is not None
    with zipfile.ZipFile(OUT / "rows.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(options.out.glob("*-small.compress/candidates/*/r*.*")):
            if path.name in ("rows.npz", "result.json"):
                archive.write(path, path.relative_to(options.out))
