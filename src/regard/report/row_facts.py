"""What a report says about single validation rows: mistakes, likely label errors, slices, and coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.records import Record
from regard.data.rows import NOWHERE, Place
from regard.errors import InputError
from regard.metrics.confidence import Score
from regard.metrics.meter import Meter
from regard.report.label_errors import rank_label_errors
from regard.tasks.task import Answer, LabelChecks, RowOutputs, Task

MISTAKES = 20  # shown
ISSUES = 40  # label errors shown
BUCKETS = 5  # of lengths
MIN_SLICE = 10  # rows of a slice
MIN_CHECKED = 20  # rows whose labels are checked: the thresholds of fewer say little
MAX_GROUPS = 20
COVERAGE_LIMITS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class RowExample:
    """A validation row with its answer, in words. `suggested` is another label that may be the right one."""

    place: str
    texts: tuple[tuple[str, str], ...]  # the input by field
    target: str
    answer: str
    confidence: float | None = None
    suggested: str | None = None


@dataclass(frozen=True)
class SliceScore:
    """The main score on a part of the rows, such as the texts of 10 to 20 words."""

    kind: str
    name: str
    rows: int
    score: Score


@dataclass(frozen=True)
class CoveragePoint:
    """The fraction of rows that are answered at a confidence, and the fraction of these that is right."""

    below: float
    coverage: float
    accuracy: float | None  # None if no row is answered


@dataclass(frozen=True)
class RowFacts:
    """All of it. What does not apply to a task is empty."""

    mistakes: tuple[RowExample, ...] = ()
    mistake_count: int = 0
    issues: tuple[RowExample, ...] = ()
    issue_count: int = 0
    slices: tuple[SliceScore, ...] = ()
    coverage: tuple[CoveragePoint, ...] = ()
    numbers: tuple[tuple[float, float], ...] = field(default=(), repr=False)  # (true, predicted)


@dataclass(frozen=True)
class _Row:
    """The numbers of a row."""

    outputs: RowOutputs
    confidence: float | None
    correct: bool | None
    error: float | None


def row_facts(task: Task, rows: Sequence[RowOutputs], answers: Sequence[Answer] | None = None) -> RowFacts:
    """The facts about these rows, answered by the task; `answers` if they are known already."""
    if answers is None:
        answers = [task.answer(row.record, row.outputs) for row in rows]
    numbered: list[_Row] = []
    numbers: list[tuple[float, float]] = []
    slices = _Slices(task, rows)
    for row, answer in zip(rows, answers, strict=True):
        slices.add(row, answer)
        correct = task.is_correct(answer, row.record)
        numbered.append(_Row(row, answer.confidence, correct, task.row_error(answer, row.record)))
        numbers += _numbers(answer, row.record)
    wrong = _mistakes(numbered)
    issues, issue_count = _issues(task, rows)
    return RowFacts(
        mistakes=tuple(_example(task, row.outputs) for row in wrong[:MISTAKES]),
        mistake_count=len(wrong),
        issues=issues,
        issue_count=issue_count,
        slices=tuple(slices.scores()),
        coverage=_coverage(numbered),
        numbers=tuple(numbers),
    )


def _numbers(answer: Answer, record: Record) -> list[tuple[float, float]]:
    """The true and the predicted number of a row, for tasks that predict one."""
    target, value = getattr(record, "label", None), getattr(answer, "value", None)
    return [(target, value)] if isinstance(target, float) and isinstance(value, float) else []


def _mistakes(rows: Sequence[_Row]) -> list[_Row]:
    """Wrong answers: the most confident first, or those with the largest error where answers have no confidence."""
    wrong = [row for row in rows if row.error]
    graded = any(row.correct is None for row in rows)
    if graded:
        return sorted(wrong, key=lambda row: -(row.error or 0))
    return sorted(wrong, key=lambda row: -(row.confidence or 0))


def _example(task: Task, row: RowOutputs, suggested: str | None = None) -> RowExample:
    answer, record = task.answer(row.record, row.outputs), row.record
    names = record.input_fields or record.text_fields
    return RowExample(
        place=place_text(record.place),
        texts=tuple((name, getattr(record, name)) for name in names),
        target=task.show_target(record),
        answer=task.show_answer(answer),
        confidence=answer.confidence,
        suggested=suggested,
    )


def place_text(place: Place) -> str:
    """Such as "reviews.csv line 12"; empty for a record that is not from a file."""
    if place == NOWHERE:
        return ""
    name = Path(place.file).name
    if place.line is not None:
        return f"{name} line {place.line:,}"
    return name if place.row is None else f"{name} row {place.row:,}"


def _issues(task: Task, rows: Sequence[RowOutputs]) -> tuple[tuple[RowExample, ...], int]:
    """The rows with the most likely label errors, and how many rows may have one."""
    checks = [task.label_checks(row.record, row.outputs) for row in rows]
    known = [check for check in checks if check is not None]
    if len(rows) < MIN_CHECKED or len(known) != len(rows) or _is_guessing(known):
        return (), 0
    worst: dict[int, tuple[float, str]] = {}
    for row, index, margin, suggested in _flagged(known):
        if row not in worst or margin < worst[row][0]:
            worst[row] = margin, known[row].show(index, suggested)
    order = sorted(worst, key=lambda row: worst[row][0])
    return tuple(_example(task, rows[row], worst[row][1]) for row in order[:ISSUES]), len(worst)


def _is_guessing(checks: Sequence[LabelChecks]) -> bool:
    """Whether always giving the most frequent label would be right as often: such a model cannot doubt a label."""
    if any(check.apart for check in checks):
        return False
    labels = np.concatenate([check.labels for check in checks])
    right = sum(int((check.chances.argmax(1) == check.labels).sum()) for check in checks)
    return len(labels) > 0 and right <= int(np.bincount(labels).max())


def _flagged(checks: Sequence[LabelChecks]) -> Iterator[tuple[int, int, float, int]]:
    """Labels that are likely to be wrong: the row, the place in it, the margin, and the suggested label."""
    counts = [len(check.labels) for check in checks]
    row_N, index_N = np.repeat(np.arange(len(checks)), counts), np.concatenate([np.arange(count) for count in counts])
    chances_NC, label_N = (
        np.concatenate(parts) for parts in zip(*((one.chances, one.labels) for one in checks), strict=True)
    )
    kinds_N = index_N if checks[0].apart else np.zeros_like(index_N)
    for kind in np.unique(kinds_N):
        own = np.flatnonzero(kinds_N == kind)
        errors = rank_label_errors(chances_NC[own], label_N[own])
        for number in errors.order[: errors.flagged].tolist():
            at = own[number]
            yield int(row_N[at]), int(index_N[at]), float(errors.margin[number]), int(errors.suggested[number])


def _coverage(rows: Sequence[_Row]) -> tuple[CoveragePoint, ...]:
    known = [(row.confidence, row.correct) for row in rows if row.confidence is not None and row.correct is not None]
    points = []
    for limit in (0.0, *COVERAGE_LIMITS) if known else ():
        answered = [correct for confidence, correct in known if confidence >= limit]
        accuracy = sum(answered) / len(answered) if answered else None
        points.append(CoveragePoint(limit, len(answered) / len(known), accuracy))
    return tuple(points)


class _Slices:
    """Meters of parts of the rows: by length, and by group, file and windows where these differ."""

    def __init__(self, task: Task, rows: Sequence[RowOutputs]) -> None:
        self.task = task
        self.names = _slice_names(rows)
        self.meters: dict[tuple[str, str], Meter] = {
            (kind, name): task.meter() for kind, names in self.names.items() for name in names.values()
        }

    def add(self, row: RowOutputs, answer: Answer) -> None:
        for kind, names in self.names.items():
            name = names.get(id(row))
            if name is not None:
                self.task.update(self.meters[kind, name], answer, row.record)

    def scores(self) -> Iterator[SliceScore]:
        for (kind, name), meter in self.meters.items():
            if meter.rows >= MIN_SLICE:
                with suppress(InputError):  # such as no word in all of these texts
                    yield SliceScore(kind, name, meter.rows, meter.scores()[meter.main])


def _slice_names(rows: Sequence[RowOutputs]) -> dict[str, dict[int, str]]:
    """The name of the slice of each row, by kind of slice and the identity of the row."""
    by_name: dict[str, Callable[[RowOutputs], str | None]] = {
        "group": lambda row: row.record.group,
        "file": lambda row: Path(row.record.place.file).name,
        "windows": lambda row: "one window" if len(row.outputs) == 1 else "several windows",
    }
    slices = {"length": _length_slices(rows)}
    for kind, name_of in by_name.items():
        names = {id(row): name for row in rows if (name := name_of(row)) is not None}
        if 1 < len(set(names.values())) <= MAX_GROUPS:
            slices[kind] = names
    return slices


def _length_slices(rows: Sequence[RowOutputs]) -> dict[int, str]:
    """The rows by length in words, in groups of about the same size; shortest first."""
    lengths = np.array([_words(row.record) for row in rows])
    if len(lengths) < 2 * MIN_SLICE:
        return {}
    inner = np.quantile(lengths, np.linspace(0, 1, BUCKETS + 1)[1:-1], method="nearest")
    edges = np.unique(np.concatenate([inner, [lengths.max()]]))
    places = np.searchsorted(edges, lengths)
    starts = [int(lengths.min()), *(int(edge) + 1 for edge in edges[:-1])]
    names = [_range(start, int(end)) for start, end in zip(starts, edges, strict=True)]
    order = np.argsort(places, kind="stable").tolist()
    return {id(rows[index]): names[int(places[index])] for index in order}


def _range(start: int, end: int) -> str:
    return f"{start:,} words" if start >= end else f"{start:,} to {end:,} words"


def _words(record: Any) -> int:
    return sum(len(text.split()) for text in record.input_texts)
