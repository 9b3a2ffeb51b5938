"""The data doctor: every row goes through every check once.

    report = check("reviews.csv")
    for finding in report.findings: ...

Memory is that of a few hashes a row: texts are not kept.
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
from regard.data.check.rules.languages import LanguageRule
from regard.data.check.rules.lengths import LengthRule, TokenCounter, estimate_from_words
from regard.data.check.rules.pair_texts import PairRule
from regard.data.check.rules.reader_errors import add_reader_error
from regard.data.check.rules.spans import SpanRule
from regard.data.check.rules.texts import TextRule
from regard.data.columns import Columns
from regard.data.formats.lines import BOM
from regard.data.hints import reading_hints
from regard.data.locate import DataLocation, find_sources
from regard.data.readers import Reader, read, split_names
from regard.data.records import Place, Record
from regard.data.schema import Schema
from regard.errors import DataError, pluralize
from regard.progress import OnProgress, Progress

TELL = 500  # rows between two words about progress


class Rule(Protocol):
    """Sees every row, and may say more at the end."""

    def check_row(self, row: CheckedRow) -> None: ...
    def finish(self) -> Any: ...


@dataclass(frozen=True)
class TargetModel:
    """The model the rows are for: how it counts tokens, how many it has places for, and what training it takes.

    `forecast` is called with the task, the rows to train on and their lengths.
    """

    count_tokens: TokenCounter = estimate_from_words
    special_tokens: int = 2  # tokens put around a text
    limit: int | None = None
    forecast: Callable[[str, int, LengthStatistics], TrainingEstimate | None] | None = None


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
    """Look through data, and through `dev` or the other splits of its folder besides it.

    `reading` is the model whose tokens are counted; without one they are estimated from words. `progress` receives
    the rows read so far.
    """
    began = time.monotonic()
    run = _Run(model or TargetModel(), progress)
    run.task, run.kind = task, labels
    told = {
        "task": task,
        "format": format,
        "columns": columns,
        "labels": labels,
        "scheme": scheme,
        "encoding": encoding,
    }
    parts = _parts(data, dev)
    for _, part, split in parts:
        find_sources(part, split=split)  # that data is not there is no finding
    for name, part, split in parts:
        run.split(name, part, split=split, skip_bad=_named(skip_bad, name, first=not run.readers), **told)
        if not run.complete:
            break
    return replace(run.report(), seconds=round(time.monotonic() - began, 3))


def _named(skip_bad: str | Path | None, split: str, *, first: bool) -> Path | None:
    """The file for bad rows of a split: as told for the first, with its name before the end for the others."""
    if skip_bad is None:
        return None
    path = Path(skip_bad)
    return path if first else path.with_name(f"{path.stem}.{split}{path.suffix}")


def _parts(where: DataLocation, dev: DataLocation | None) -> list[tuple[str, DataLocation, str | None]]:
    """Name, data and split of each part, the one to train on first."""
    names = split_names(where)
    if not names:
        parts: list[tuple[str, DataLocation, str | None]] = [("train" if dev is not None else "data", where, None)]
    else:
        parts = [(name, where, name) for name in (names if dev is None else names[:1])]
    return parts if dev is None else [*parts, ("valid", dev, None)]


class _Run:
    """All checks, and what they have seen."""

    def __init__(self, reading: TargetModel, progress: OnProgress | None) -> None:
        self.reading, self.progress = reading, progress
        self.gather, self.rows, self.complete = FindingCollector(), RowStore(), True
        self.readers: dict[str, Reader] = {}
        self.task: str | None = None  # what the user said, as `kind` of labels
        self.kind: str | None = None
        self.labels = LabelRule(self.gather)
        self.measure = LengthRule(
            self.gather, count=reading.count_tokens, frame=reading.special_tokens, limit=reading.limit
        )
        self.checks: list[Rule] = [
            self.rows,
            TextRule(self.gather),
            self.labels,
            SpanRule(self.gather),
            PairRule(self.gather, self.rows),
            LanguageRule(self.gather),
            self.measure,
        ]

    def split(self, name: str, where: DataLocation, *, split: str | None, **told: Any) -> None:
        """Every row of one split."""
        like = next((reader.schema for reader in self.readers.values()), None)
        try:
            reader = read(where, split=split, like=like, on_bad=lambda error: self._bad(error, name), **told)
            self.readers[name] = reader
            self._marks(reader, name)
            header = _header(reader.schema)
            for record in reader:
                row = checked_row(record, name)
                if header and _is_header(record, header):
                    self.gather.add("header-row", row.place, "the row repeats the header", split=name)
                    continue
                for one in self.checks:
                    one.check_row(row)
                if self.progress is not None and len(self.rows) % TELL == 0:
                    self.progress(Progress("rows", len(self.rows)))
            self._left_out(reader, name)
        except DataError as error:
            self.complete = False
            add_reader_error(self.gather, error, name, kind="unreadable")

    def _left_out(self, reader: Reader, split: str) -> None:
        """Rows that the file itself says not to use."""
        for reason, count in reader.excluded.items():
            place = Place(reader.sources[0][0].name)
            what = f"{pluralize(count, 'row')} left out: {reason}"
            self.gather.add("left-out", place, what, split=split, key=f"{split} {reason}", count=count)

    def _bad(self, error: DataError, split: str) -> None:
        add_reader_error(self.gather, error, split)

    def _marks(self, reader: Reader, split: str) -> None:
        """Files that begin with a byte order mark."""
        for sources in reader.sources:
            for source in sources:
                if source.path is not None and source.head(len(BOM)).startswith(BOM):
                    what = "the file begins with a byte order mark, which some tools read as a part of the first name"
                    self.gather.add("bom", Place(source.name, 1), what, split=split)

    def report(self) -> CheckReport:
        first = next(iter(self.readers.values()), None)
        same = DuplicateRule(self.gather, self.rows, task=None if first is None else first.schema.task)
        same.finish()
        found = {type(one).__name__: one.finish() for one in self.checks}
        if first is not None:
            self._hints(first)
        lengths: LengthStatistics | None = found["LengthRule"]
        return CheckReport(
            rows=len(self.rows),
            bad_rows=sum(reader.bad_rows for reader in self.readers.values()),
            task=None if first is None else first.schema.task,
            format="" if first is None else first.summary,
            labels=self.labels.total,
            findings=self.gather.findings(),
            splits=tuple(self._split(name, reader) for name, reader in self.readers.items()),
            overlaps=same.overlaps(),
            numbers=self.labels.spread,
            lengths=lengths,
            estimate=self._estimate(first, lengths),
            encoding=None if first is None else first.schema.encoding,
            complete=self.complete,
        )

    def _hints(self, reader: Reader) -> None:
        """What may be meant instead of what was recognised."""
        place = Place(reader.sources[0][0].name)
        for hint in reading_hints(reader.schema, self.labels.total, task=self.task, kind=self.kind):
            self.gather.add(hint.kind, place, hint.message, fix=hint.fix)

    def _estimate(self, first: Reader | None, lengths: LengthStatistics | None) -> TrainingEstimate | None:
        if self.reading.forecast is None or first is None or lengths is None:
            return None
        return self.reading.forecast(first.schema.task, first.rows, lengths)

    def _split(self, name: str, reader: Reader) -> Split:
        files = tuple(source.name for sources in reader.sources for source in sources)
        return Split(name, files, reader.rows, reader.bad_rows, dict(self.labels.counts.get(name, {})))


def _header(found: Schema) -> dict[str, str]:
    """Names of columns that a row could repeat."""
    return dict(found.columns) if found.header and found.format in ("csv", "tsv") else {}


def _is_header(record: Record, columns: dict[str, str]) -> bool:
    """Whether every value is the name of its column."""
    given = [(getattr(record, role, None), name) for role, name in columns.items()]
    return len(given) > 1 and all(value == name for value, name in given)
