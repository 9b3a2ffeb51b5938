"""`regard.compress`: the smallest model that keeps the score."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from regard.comparison.groups import group_key, row_groups
from regard.comparison.labels import label_mapping
from regard.comparison.trainings.compared_data import TEST_FRACTION, ComparedData, load_compared_data
from regard.comparison.trainings.time_budget import parse_duration
from regard.compression.candidates import (
    METHODS,
    CandidateSpec,
    Workshop,
    check_candidates,
    check_methods,
    plan_candidates,
    unused_notes,
)
from regard.compression.guarantee import check_floor, check_rows
from regard.compression.more_rows import can_use, read_unlabeled, variant_count, variants, with_more_rows
from regard.compression.output import write_chosen
from regard.compression.result import CandidateResult, Compression
from regard.compression.search import Entry, Search
from regard.compression.seen_rows import seen_note
from regard.compression.state import WorkFolder
from regard.compression.teacher import Teacher
from regard.compression.weak_teacher import weak_teacher_note
from regard.data.schema.columns import Columns
from regard.errors import InputError, RegardError, pluralize, setting
from regard.locks import folder_lock
from regard.predict.load import load
from regard.predict.model import Model
from regard.predict.model_task import capabilities, describe_model, read_training_run, task_for
from regard.progress import OnProgress
from regard.tasks import for_pairs
from regard.tasks.classify import Classify
from regard.tasks.task import Task
from regard.training.load_data import Where
from regard.training.output.metrics_log import OnTrainingEvent
from regard.training.settings import FineTuneSettings, Settings

LOCKED = "Wait until it has ended, stop it, or name another folder with --out."
SHOWN = 5  # candidates in the message that none holds the floor


class BelowFloor(RegardError):
    """No candidate keeps enough of the score; `compression` has what was measured."""

    def __init__(self, message: str, compression: Compression) -> None:
        super().__init__(message)
        self.compression = compression


def compress(
    model: str | Path,
    data: Where,
    *,
    out: str | Path,
    floor: float = 0.99,
    unlabeled: Where | None = None,
    test: Where | None = None,
    dev: Where | None = None,
    time: str | float | None = "60m",
    target_ms: float | None = None,
    methods: Sequence[str] = METHODS,
    test_fraction: float = TEST_FRACTION,
    format: str | None = None,
    columns: Columns | None = None,
    encoding: str | None = None,
    labels: str | None = None,
    allow_below_floor: bool = False,
    keep_all: bool = False,
    overwrite: bool = False,
    progress: OnProgress | None = None,
    training: OnTrainingEvent | None = None,
    **settings: Unpack[FineTuneSettings],
) -> Compression:
    """Find the fastest model that keeps `floor` of the score of a trained model, and write it as a folder.

    model: the folder of the trained model, the teacher. data: labeled rows for its task; students are trained on them.
        Validation and test rows are split off, unless the data has such splits or `dev` and `test` are given. Give
        rows that the teacher was not trained on as `test`.
    floor: the part of the teacher's main score to keep. A candidate counts if the lower end of the 95 % interval of its
        paired difference to the teacher is above the floor on the test rows, which chose nothing.
    unlabeled: texts that the teacher labels for the students; variants of the training texts if not given.
    time: budget for all candidates, such as "60m"; None for no limit.
    target_ms: stop as soon as a candidate takes at most so long for a text of 24 words.
    methods: which candidates are tried: int8, layers (students of the teacher), static, ngram.
    allow_below_floor: write the candidate that comes nearest if none holds the floor.
    keep_all: keep the work folder (`out` with `.compress` added) with all candidates. It is also where a compression
        that was killed goes on.
    progress: called with `Progress("candidates", done, total)`, whose `values` have the name of the candidate, and with
        `Progress("teacher", done, total)` for rows that the teacher answers for students, and with
        `Progress("rows", done, total)` for rows that a candidate answers to be scored.
    training: called with the events of each training.
    settings: of the trainings of students, see `regard.Settings`.

    Raises BelowFloor, and writes nothing, if no candidate holds the floor.

    Example: `regard.compress("runs/reviews", "reviews.csv", floor=0.99, out="runs/small").chosen`.
    """
    request = _Request(Path(out).expanduser(), floor, parse_duration(time), target_ms, allow_below_floor, overwrite)
    check_floor(floor)
    check_methods(methods)
    user_settings = Settings.of(settings)
    reading: dict[str, Any] = {"format": format, "columns": columns, "encoding": encoding, "labels": labels}
    reading |= {"test": test, "dev": dev, "test_fraction": test_fraction}
    opened, task, rows = _open(model, data, user_settings.device, reading)
    check_rows(len(rows.test), floor)
    candidates = plan_candidates(opened, task.name, methods=methods)
    check_candidates(candidates, task.name, methods)
    rows = replace(rows, notes=(*rows.notes, *unused_notes(opened, task.name, methods)))
    texts = None if unlabeled is None else read_unlabeled(unlabeled, task.name)
    work = WorkFolder.of(request.target)
    with folder_lock(work.path, activity="written by a compression", fix=LOCKED):
        workshop = Workshop(Teacher(opened, task, work.teacher_cache, progress), rows.labeled, settings, training)
        workshop.more_rows = lambda: _more_rows(workshop, texts, user_settings.seed)
        result = _compress(request, workshop, work, rows, candidates, progress)
        return result if keep_all else _without_candidates(result, work)


@dataclass(frozen=True)
class _Request:
    """What was asked for."""

    target: Path
    floor: float
    budget: float | None
    target_ms: float | None
    allow_below_floor: bool
    overwrite: bool
    started: float = field(default_factory=clock.monotonic)


def _compress(
    request: _Request,
    workshop: Workshop,
    work: WorkFolder,
    rows: ComparedData,
    candidates: Sequence[CandidateSpec],
    progress: OnProgress | None,
) -> Compression:
    """Search in the work folder, and write what was chosen."""
    shared = {"teacher": workshop.teacher.identity, "floor": request.floor, "settings": dict(workshop.settings)}
    work.open({**rows.identity, **shared}, overwrite=request.overwrite)
    _check_target(request.target, overwrite=request.overwrite)
    search = _search(workshop, work, rows, request, progress)
    search.run(candidates)
    return _finish(search, rows, request)


def _open(model: str | Path, data: Where, device: str, reading: Mapping[str, Any]) -> tuple[Model, Task, ComparedData]:
    """The teacher, its task, and the rows for it."""
    opened = load(model, device=device, engine="torch")
    task = _teacher_task(opened)
    if isinstance(data, ComparedData):
        return opened, _checked_task(opened, task, data), data
    rows = load_compared_data(data, task=task.name, **reading)
    task = _checked_task(opened, task, rows)
    note = seen_note(opened.folder, rows.test)
    return opened, task, rows if note is None else replace(rows, notes=(*rows.notes, note))


def _without_candidates(result: Compression, work: WorkFolder) -> Compression:
    """The result after the folders of all candidates were removed."""
    work.remove()
    return replace(result, candidates=tuple(replace(one, folder=None) for one in result.candidates))


def _teacher_task(model: Model) -> Task:
    """The task of the teacher; an error if it is none that students can learn."""
    task = task_for(model.checkpoint, model.folder)
    if task.language_model:
        raise InputError(
            f"this is {describe_model(task.name)}; such models are not compressed. Fine-tune it first with regard "
            f"train, for example to classify texts. {capabilities(model.network)}"
        )
    return task


def _checked_task(model: Model, task: Task, rows: ComparedData) -> Task:
    """The teacher's task; an error if the data has labels that the teacher does not know."""
    if rows.task.name == task.pair_task and read_training_run(model.folder) is None:
        task = for_pairs(task)
    if not isinstance(task, Classify) or not isinstance(rows.task, Classify) or not task.names:
        return task
    if label_mapping(task.names, rows.task.names, model="the teacher", where="the data") is not None:
        raise InputError("the labels of the data are written differently from those of the teacher. Rename them.")
    return task


def _check_target(target: Path, *, overwrite: bool) -> None:
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise InputError(f"{target} exists and is not empty. Name a new folder, or use {setting('overwrite', True)}.")


def _more_rows(workshop: Workshop, texts: Sequence[Any] | None, seed: int) -> None:
    """Add rows that the teacher labels, once, before the first training."""
    data = workshop.data
    if texts is None:
        if not can_use(data.task):
            return
        texts = variants(data.train, count=variant_count(data.train), seed=seed)
    workshop.data = with_more_rows(data, workshop.teacher, texts)


def _search(
    workshop: Workshop, work: WorkFolder, rows: ComparedData, request: _Request, progress: OnProgress | None
) -> Search:
    groups = row_groups([group_key(record) for record in rows.test])
    task = workshop.teacher.task
    meter = task.meter()
    if not meter.higher_is_better:
        raise InputError(f"the main score of {task.name} is lower for better models; a floor is for scores to keep.")
    deadline = None if request.budget is None else clock.monotonic() + request.budget
    return Search(
        workshop,
        work,
        task,
        rows.labeled.dev,
        rows.test,
        meter.main,
        request.floor,
        deadline,
        target_ms=request.target_ms,
        groups=groups.numbers,
        progress=progress,
    )


def _finish(search: Search, rows: ComparedData, request: _Request) -> Compression:
    """Choose a candidate and write it; an error if there is none."""
    chosen = search.choose()
    failed = chosen is None
    if chosen is None and request.allow_below_floor:
        nearest = search.nearest()
        if nearest:
            index = search.entries.index(nearest[0])
            chosen = replace(nearest[0], result=replace(nearest[0].result, is_chosen=True, holds=False))
            search.entries[index] = chosen
    assert search.teacher is not None
    weak = weak_teacher_note(search.teacher.result, rows.test)
    notes = [*rows.notes, *([] if weak is None else [weak]), *_search_notes(search, chosen)]
    if failed and chosen is not None:
        notes.append(f"no candidate holds the floor of {search.floor:g}; {chosen.result.name} comes nearest")
    elif chosen is not None:
        others = [entry.result for entry in search.entries]
        notes += speed_notes(chosen.result, search.teacher.result, others, dev_rows=len(rows.labeled.dev))
    result = Compression(
        task=search.task.name,
        metric=search.metric,
        floor=search.floor,
        teacher=search.teacher.result,
        candidates=tuple(entry.result for entry in search.entries),
        chosen=None if chosen is None else chosen.result.name,
        folder=None if chosen is None else str(request.target),
        rows=len(rows.test),
        dev_rows=len(rows.labeled.dev),
        notes=tuple(notes),
        seconds=round(clock.monotonic() - request.started, 3),
    )
    if chosen is None:
        raise BelowFloor(below_floor_message(search), result)
    write_chosen(request.target, search.work.model(chosen.candidate), result, overwrite=request.overwrite)
    return result


def _search_notes(search: Search, chosen: Entry | None) -> list[str]:
    """Which candidates were not made, and whether the target was reached."""
    notes = []
    if search.skipped:
        notes.append(f"the time was up before these candidates: {', '.join(search.skipped)}")
    if search.unneeded:
        last = search.entries[-1].result.name
        names = ", ".join(search.unneeded)
        notes.append(f"{last} takes at most {search.target_ms:g} ms, so these candidates were not made: {names}")
    if search.target_ms is not None and chosen is not None and chosen.result.cost > search.target_ms:
        notes.append(
            f"no candidate that holds the floor takes at most {search.target_ms:g} ms for a text of 24 words; "
            f"{chosen.result.name} takes {chosen.result.cost:.1f} ms"
        )
    return notes


def speed_notes(
    chosen: CandidateResult, teacher: CandidateResult, others: Iterable[CandidateResult], *, dev_rows: int
) -> list[str]:
    """Why a faster candidate with as good a score was not chosen, and whether the chosen one is no faster."""
    notes = []
    for other in others:
        if other.difference is None or other.dev_margin is None or chosen.difference is None or other.holds is not None:
            continue
        if other.cost < chosen.cost and other.difference.value >= chosen.difference.value:
            margin = other.dev_margin.value
            place = f"{abs(margin):.4f} {'below' if margin <= 0 else 'above'} the floor"
            notes.append(
                f"{other.name} is faster ({other.cost:.1f} ms) and scores as well on the test rows, but was not "
                f"tested: on {pluralize(dev_rows, 'validation row')} it is {place}, and only more of them can tell"
            )
    if chosen.cost >= teacher.cost:
        notes.append(f"{chosen.name} takes less memory than the teacher, but is no faster on this machine")
    return notes


def below_floor_message(search: Search) -> str:
    """Which candidates come nearest, and what would help."""
    lines = [f"no candidate keeps {search.floor:.1%} of the teacher's {search.metric}; nothing was written."]
    lines += [f"  {_missing(search, entry)}" for entry in search.nearest()[:SHOWN]]
    errors = [f"  {entry.result.name}: {entry.result.error}" for entry in search.entries if entry.result.error]
    lines += errors[:SHOWN]
    lines.append(
        f"Lower {setting('floor')}, give more rows ({setting('unlabeled')}, {setting('test')}) or more "
        f"{setting('time')}, or write the nearest one with {setting('allow_below_floor', True)}."
    )
    return "\n".join(lines)


def _missing(search: Search, entry: Entry) -> str:
    test = search.test_entry(entry)
    score = entry.result.scores[search.metric].value
    text = f"{entry.result.name}: {search.metric} {score:.4f}, {-test.margin.low:.4f} below the floor at worst"
    if test.rows_needed is not None:
        text += f"; {test.rows_needed:,} test rows would show that it holds it (there are {test.rows:,})"
    return text
