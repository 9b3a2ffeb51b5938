"""Check data: find problems in rows, labels and splits, with suggested fixes.

    report = check("reviews.csv")
    for finding in report.findings:
        print(finding.line, finding.message, finding.fix)

Every row passes every rule once. Texts are not kept in memory, only a few hashes per row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from regard.data.check.collect import FindingCollector
from regard.data.check.finding import CheckReport, LengthStatistics, Split, TrainingEstimate
from regard.data.check.row_store import RowStore
from regard.data.check.rules.checked_row import CheckedRow, checked_row
from regard.data.check.rules.duplicates import DuplicateRule
from regard.data.check.rules.labels import LabelRule
from regard.data.check.rules.lengths import LengthRule, TokenCounter, estimate_from_words
from regard.data.check.rules.pair_texts import PairRule
from regard.data.check.rules.reader_errors import add_reader_error
from regard.data.check.rules.scripts import ScriptRule
from regard.data.check.rules.spans import SpanRule
from regard.data.check.rules.texts import TextRule
from regard.data.hints import reading_hints
from regard.data.readers import Reader, read, split_names
from regard.data.records import Place, Record
from regard.data.schema.columns import Columns
from regard.data.sources.locate import DataLocation, find_sources
from regard.errors import DataError, pluralize
from regard.progress import OnProgress, Progress

PROGRESS_STEP = 500  # rows between two reports of progress


class Rule(Protocol):
    """A check of all rows. `check_row` is called for each row, `finish` after the last one."""

    def check_row(self, row: CheckedRow) -> None: ...
    def finish(self) -> Any: ...


@dataclass(frozen=True)
class TargetModel:
    """The model that the data is for.

    count_tokens: counts the tokens of texts.
    special_tokens: number of special tokens around a text.
    limit: maximum tokens of the model.
    forecast: estimates training; called with the task, the number of training rows, their lengths, the number of
        classes, 0 if the labels are not classes, and whether validation rows are split off from these rows.
    """

    count_tokens: TokenCounter = estimate_from_words
    special_tokens: int = 2
    limit: int | None = None
    forecast: Callable[[str, int, LengthStatistics, int, bool], TrainingEstimate | None] | None = None


def check(
    data: DataLocation,
    *,
    dev: DataLocation | None = None,
    task: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    labels: str | None = None,
    scheme: str | None = None,
    encoding: str | None = None,
    skip_bad: str | Path | None = None,
    model: TargetModel | None = None,
    progress: OnProgress | None = None,
) -> CheckReport:
    """Check data, and compare it with `dev` or with the other splits in its folder.

    data: a file, a folder with train, valid and test, or two aligned files; as for `regard.train`.
    dev: validation data that should have no rows in common with it.
    task, format, columns, labels, scheme, encoding: how to read the data (default: recognized).
    skip_bad: a file for the rows that cannot be used, as JSON lines.
    model: counts tokens and estimates training (default: tokens are estimated from words).
    progress: called with the number of rows checked so far.

    Problems in the data are findings, not exceptions. Raises DataError or InputError if there is no such data or a
    setting cannot be used.
    """
    start = time.monotonic()
    run = _CheckRun(model or TargetModel(), progress, task=task, label_kind=labels)
    options = {
        "task": task,
        "format": format,
        "columns": columns,
        "labels": labels,
        "scheme": scheme,
        "encoding": encoding,
    }
    parts = _parts(data, dev)
    for _, location, split in parts:
        find_sources(location, split=split)  # raises if there is no such data
    for name, location, split in parts:
        bad_rows_file = _bad_rows_file(skip_bad, name, is_first=not run.readers)
        run.check_split(name, location, split=split, skip_bad=bad_rows_file, **options)
        if not run.is_complete:
            break
    return replace(run.report(), seconds=round(time.monotonic() - start, 3))


def _bad_rows_file(skip_bad: str | Path | None, split: str, *, is_first: bool) -> Path | None:
    """The file for bad rows of a split: `bad.jsonl` for the first one, `bad.valid.jsonl` for "valid"."""
    if skip_bad is None:
        return None
    path = Path(skip_bad)
    return path if is_first else path.with_name(f"{path.stem}.{split}{path.suffix}")


def _parts(data: DataLocation, dev: DataLocation | None) -> list[tuple[str, DataLocation, str | None]]:
    """Name, location and split of each part, the training data first."""
    names = split_names(data)
    parts: list[tuple[str, DataLocation, str | None]]
    if names:
        parts = [(name, data, name) for name in (names if dev is None else names[:1])]
    else:
        parts = [("data" if dev is None else "train", data, None)]
    if dev is not None:
        parts.append(("valid", dev, None))
    return parts


class _CheckRun:
    """All rules, and their state."""

    def __init__(
        self, model: TargetModel, progress: OnProgress | None, *, task: str | None, label_kind: str | None
    ) -> None:
        self.model = model
        self.progress = progress
        self.task = task  # as given by the user, like label_kind
        self.label_kind = label_kind
        self.is_complete = True
        self.readers: dict[str, Reader] = {}  # by split
        self.collector = FindingCollector()
        self.rows = RowStore()
        self.labels = LabelRule(self.collector)
        self.lengths = LengthRule(
            self.collector,
            count_tokens=model.count_tokens,
            special_tokens=model.special_tokens,
            limit=model.limit,
        )
        self.rules: list[Rule] = [
            self.rows,
            TextRule(self.collector),
            self.labels,
            SpanRule(self.collector),
            PairRule(self.collector, self.rows),
            ScriptRule(self.collector),
        ]

    def check_split(self, name: str, location: DataLocation, *, split: str | None, **options: Any) -> None:
        """Check every row of one split."""
        like = next((reader.schema for reader in self.readers.values()), None)

        def on_bad(error: DataError) -> None:
            add_reader_error(self.collector, error, name)

        try:
            reader = read(location, split=split, like=like, on_bad=on_bad, **options)
            self.readers[name] = reader
            for record in reader:
                self._check_row(record, name)
            self._add_excluded(reader, name)
        except DataError as error:
            self.is_complete = False
            add_reader_error(self.collector, error, name, kind="unreadable")

    def _check_row(self, record: Record, split: str) -> None:
        row = checked_row(record, split)
        for rule in self.rules:
            rule.check_row(row)
        self.lengths.check_row(row)
        if self.progress is not None and len(self.rows) % PROGRESS_STEP == 0:
            self.progress(Progress("rows", len(self.rows)))

    def _add_excluded(self, reader: Reader, split: str) -> None:
        """Rows that the file itself marks as not to be used."""
        for reason, count in reader.excluded.items():
            place = Place(reader.sources[0][0].name)
            message = f"{pluralize(count, 'row')} left out: {reason}"
            self.collector.add("excluded-row", place, message, split=split, key=f"{split} {reason}", count=count)

    def report(self) -> CheckReport:
        """Finish all rules, and summarize."""
        first = next(iter(self.readers.values()), None)
        task = None if first is None else first.schema.task
        duplicates = DuplicateRule(self.collector, self.rows, task=task)
        duplicates.finish()
        for rule in self.rules:
            rule.finish()
        lengths = self.lengths.finish()
        if first is not None:
            self._add_hints(first)
        return CheckReport(
            rows=len(self.rows),
            bad_rows=sum(reader.bad_rows for reader in self.readers.values()),
            task=self.task or task,
            format="" if first is None else first.summary,
            labels=self.labels.total,
            findings=self.collector.findings(),
            splits=tuple(self._split(name, reader) for name, reader in self.readers.items()),
            overlaps=duplicates.overlaps(),
            numbers=self.labels.number_range,
            lengths=lengths,
            estimate=self._estimate(first, lengths),
            encoding=None if first is None else first.schema.encoding,
            complete=self.is_complete,
        )

    def _add_hints(self, reader: Reader) -> None:
        """Other ways to read the data that are probably intended."""
        place = Place(reader.sources[0][0].name)
        for hint in reading_hints(reader.schema, self.labels.total, task=self.task, kind=self.label_kind):
            self.collector.add(hint.kind, place, hint.message, fix=hint.fix)

    def _estimate(self, first: Reader | None, lengths: LengthStatistics | None) -> TrainingEstimate | None:
        if self.model.forecast is None or first is None or lengths is None:
            return None
        one_label = sum(next(iter(self.labels.counts.values()), {}).values()) == first.rows
        classes = len(self.labels.total) if one_label and self.label_kind in (None, "single") else 0
        task, split_off = self.task or first.schema.task, "valid" not in self.readers
        return self.model.forecast(task, first.rows, lengths, classes, split_off)

    def _split(self, name: str, reader: Reader) -> Split:
        files = tuple(source.name for sources in reader.sources for source in sources)
        return Split(name, files, reader.rows, reader.bad_rows, dict(self.labels.counts.get(name, {})))
