"""Make and measure candidates one after the other, until the time is up, and choose one."""

from __future__ import annotations

import gc
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.checkpoint.files import write_json
from regard.compression.candidates import INT8_METHOD, CandidateSpec, Workshop, without_layers
from regard.compression.guarantee import LEVEL, FloorTest, compare_to_floor
from regard.compression.layer_costs import layer_costs
from regard.compression.measure import Measured, empty_table, measure
from regard.compression.result import CandidateResult
from regard.compression.state import WorkFolder
from regard.compression.weak_teacher import weak_teacher_note
from regard.data.records import Record
from regard.errors import FolderError, InputError, RegardError
from regard.metrics.paired.rows import RowTable
from regard.predict.load import load
from regard.predict.model_task import RUN, read_training_run, task_for
from regard.progress import OnProgress, Progress
from regard.tasks.task import Task
from regard.training.engine.loop import Stopped

LIKELY = 0.5  # level of the interval on validation rows above the floor; the test rows then prove it
ATTEMPTS = 5  # candidates that are tested at most, each with half of the error probability that is left
SMALLER = 0.95  # of the teacher's bytes, for a candidate that is not faster
EXCLUDED = (1, 2, 4)  # layers that are tried in fp32
SAMPLE = 32  # rows that the costs of layers are measured on


@dataclass(frozen=True, eq=False)
class Entry:
    """A candidate with its result and its rows."""

    candidate: CandidateSpec
    result: CandidateResult
    dev: RowTable | None = None
    test: RowTable | None = None


@dataclass(eq=False)
class Search:
    """The state of a search; `teacher` is measured like a candidate."""

    workshop: Workshop
    work: WorkFolder
    task: Task
    dev: Sequence[Record]
    test: Sequence[Record]
    metric: str
    floor: float
    deadline: float | None
    target_ms: float | None = None
    groups: NDArray[np.intp] | None = None
    progress: OnProgress | None = None
    entries: list[Entry] = field(default_factory=list)
    teacher: Entry | None = None
    skipped: list[str] = field(default_factory=list)  # candidates that there was no time for
    unneeded: list[str] = field(default_factory=list)  # candidates after the one that reached `target_ms`

    def run(self, candidates: Sequence[CandidateSpec]) -> None:
        """Measure the teacher, then the candidates."""
        waiting = list(candidates)
        self._report("teacher", 0, len(waiting))
        self.teacher = self._measured(CandidateSpec("teacher", "teacher", "teacher"), self.workshop.teacher_folder)
        score = self.teacher.result.scores[self.metric].value
        if not score > 0:
            raise InputError(f"the {self.metric} of the teacher is {score:g} on the test rows; there is none to keep.")
        if (note := weak_teacher_note(self.teacher.result, self.test)) is not None:
            warnings.warn(f"{note}.", UserWarning, stacklevel=2)
        done = 1
        while waiting:
            candidate = waiting.pop(0)
            if self._is_late() and self.work.read(candidate.slug, None) is None:
                self.skipped = [candidate.name, *(other.name for other in waiting)]
                break
            self._report(candidate.name, done, done + len(waiting))
            trainings = 1 + sum(other.is_trained for other in waiting)
            entry = self._entry(candidate, trainings)
            self.entries.append(entry)
            done += 1
            waiting = self._after_int8(entry) + waiting
            if self._reached_target(entry):
                self.unneeded = [other.name for other in waiting]
                break

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _reached_target(self, entry: Entry) -> bool:
        return self.target_ms is not None and entry.result.cost <= self.target_ms and self.is_likely(entry)

    def _entry(self, candidate: CandidateSpec, trainings: int) -> Entry:
        folder = self.work.model(candidate)
        base = self.workshop.teacher_folder
        if candidate.base is not None:
            base = next(
                self.work.model(other.candidate) for other in self.entries if other.candidate.name == candidate.base
            )
        try:
            if self.work.read(candidate.slug, None) is None:
                self.workshop.prepare(candidate)
                left = None if self.deadline is None else max(self.deadline - time.monotonic(), 1.0) / trainings
                self.workshop.make(candidate, folder, base, left if candidate.is_trained else None)
            return self._measured(candidate, folder)
        except Stopped:  # by a signal; the next run goes on with this training
            raise
        except OSError as error:  # such as a full disk: not a result, the next run tries again
            raise FolderError(
                f"{_write_problem(error, folder)} The candidates before {candidate.name} are kept: free some space, "
                "then run the same command again, and it goes on."
            ) from error
        except RegardError as error:
            result = CandidateResult(candidate.name, candidate.method, error=str(error))
            self.work.write(candidate.slug, result, None, None)
            return Entry(candidate, result)

    def _measured(self, candidate: CandidateSpec, folder: Path) -> Entry:
        """The stored result of an earlier run, or a new one."""
        like = empty_table(self.task.meter())
        stored = self.work.read(candidate.slug, like)
        if stored is not None and (stored[0].error is not None or stored[1] is not None):
            return Entry(candidate, *stored)
        model = load(folder, device="cpu")
        task = task_for(model.checkpoint, model.folder)
        measured = measure(model, task, self.dev, self.test, progress=self.progress)
        if candidate.name != "teacher" and read_training_run(folder) is not None:
            _store_task(folder, measured.task)
        entry = self._with_tests(candidate, measured, folder)
        self.work.write(candidate.slug, entry.result, entry.dev, entry.test)
        del model
        gc.collect()
        return entry

    def _with_tests(self, candidate: CandidateSpec, measured: Measured, folder: Path) -> Entry:
        result = CandidateResult(
            candidate.name,
            candidate.method,
            scores=measured.scores,
            latency_ms=measured.latency_ms,
            texts_per_second=measured.texts_per_second,
            bytes=measured.bytes,
            parameters=measured.parameters,
            train_seconds=round(self.workshop.seconds.get(candidate.name, 0.0), 3),
            folder=str(folder),
        )
        if self.teacher is None or self.teacher.dev is None or self.teacher.test is None:
            return Entry(candidate, result, measured.dev, measured.test)
        on_dev = compare_to_floor(measured.dev, self.teacher.dev, self.metric, self.floor, level=LIKELY)
        on_test = self.test_entry(Entry(candidate, result, measured.dev, measured.test))
        result = replace(
            result, difference=on_test.difference, dev_margin=on_dev.margin, rows_needed=on_test.rows_needed
        )
        return Entry(candidate, result, measured.dev, measured.test)

    def _after_int8(self, entry: Entry) -> list[CandidateSpec]:
        """The same candidate with the layers in fp32 that lose most, if int8 loses too much."""
        candidate = entry.candidate
        tries = candidate.kind == "int8" and candidate.base is None and len(candidate.exclude) < EXCLUDED[-1]
        if not tries or entry.result.error is not None or self.is_likely(entry):
            return []
        if self.work.read(entry.candidate.slug, None) is None:
            return []
        model = self.workshop.teacher.model
        tokenizer = model.require_tokenizer()
        ids = [tokenizer.encode(" ".join(text for _, text in row.texts)).ids for row in self.dev[:SAMPLE]]
        limit = model.config.max_tokens or 512
        costs = list(layer_costs(model, [row[:limit] for row in ids]))
        count = next(number for number in EXCLUDED if number > len(candidate.exclude))
        return [without_layers(replace(candidate, name="int8", method=INT8_METHOD), costs[:count])]

    def is_likely(self, entry: Entry) -> bool:
        """Whether the validation rows say that a candidate holds the floor."""
        margin = entry.result.dev_margin
        return margin is not None and margin.low > 0 and self._is_smaller(entry)

    def _is_possible(self, entry: Entry) -> bool:
        """Whether a candidate holds the floor on the validation rows, but they are too few to call it likely."""
        margin = entry.result.dev_margin
        return margin is not None and margin.low <= 0 < margin.value and self._is_smaller(entry)

    def _is_smaller(self, entry: Entry) -> bool:
        """Whether a candidate is faster than the teacher, or needs less memory."""
        if self.teacher is None:
            return False
        mine, teacher = entry.result, self.teacher.result
        return mine.cost < teacher.cost or mine.bytes < SMALLER * teacher.bytes

    def test_entry(self, entry: Entry, level: float = LEVEL) -> FloorTest:
        """The test of a candidate on the test rows."""
        assert self.teacher is not None
        assert entry.test is not None
        assert self.teacher.test is not None
        return compare_to_floor(entry.test, self.teacher.test, self.metric, self.floor, groups=self.groups, level=level)

    def choose(self) -> Entry | None:
        """The fastest candidate that is likely to hold the floor and does so on the test rows.

        If the first one fails there, the next is tested with half of the error probability that is left, so that all
        tests together are wrong in at most 5 % of the searches. Those that are only possible come last.
        """
        measured = sorted((entry for entry in self.entries if entry.test is not None), key=lambda one: one.result.cost)
        ordered = [*filter(self.is_likely, measured), *filter(self._is_possible, measured)]
        for attempt, entry in enumerate(ordered[:ATTEMPTS]):
            level = LEVEL if attempt == 0 else 1 - (1 - LEVEL) / 2**attempt
            test = self.test_entry(entry, level)
            index = self.entries.index(entry)
            self.entries[index] = replace(entry, result=replace(entry.result, holds=test.holds, is_chosen=test.holds))
            if test.holds:
                return self.entries[index]
        return None

    def nearest(self) -> list[Entry]:
        """Measured candidates, those that come nearest to the floor first."""
        measured = [entry for entry in self.entries if entry.test is not None]
        return sorted(measured, key=lambda entry: -self.test_entry(entry).margin.value)

    def _report(self, name: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(Progress("candidates", done, total, {"name": name}))


def _store_task(folder: Path, task: Task) -> None:
    """What was tuned again, in run.json."""
    run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    write_json(folder / RUN, {**run, "task_settings": json.loads(json.dumps(task.settings()))})


def _write_problem(error: OSError, folder: Path) -> str:
    """Why a file could not be written, as a sentence."""
    if isinstance(error, FolderError):
        return str(error)
    return f"{folder} could not be written: {error.strerror or error}."
