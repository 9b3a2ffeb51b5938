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

from regard.data.check.collect import Gather
from regard.data.check.finding import Estimate, Lengths, Report, Split
from regard.data.check.rules.duplicates import Same
from regard.data.check.rules.labels import Labels
from regard.data.check.rules.languages import Languages
from regard.data.check.rules.lengths import Count, Measure, by_words
from regard.data.check.rules.pair_texts import Pairs
from regard.data.check.rules.reader_errors import note_fault
from regard.data.check.rules.spans import Spans
from regard.data.check.rules.texts import Texts
from regard.data.check.rules.view import Seen, seen
from regard.data.check.store import Rows
from regard.data.formats.lines import BOM
from regard.data.hints import reading_hints
from regard.data.names import Columns
from regard.data.readers import Reader, read, split_names
from regard.data.recognize import Schema
from regard.data.records import Place, Record
from regard.data.sources import DataLocation, find_sources
from regard.errors import DataError, counted
from regard.progress import OnProgress, Progress

TELL = 500  # rows between two words about progress


class Check(Protocol):
    """Sees every row, and may say more at the end."""

    def see(self, row: Seen) -> None: ...
    def end(self) -> Any: ...


@dataclass(frozen=True)
class Reading:
    """The model the rows are for: how it counts tokens, how many it has places for, and what training it takes.

    `forecast` is called with the task, the rows to train on and their lengths.
    """

    count: Count = by_words
    frame: int = 2  # tokens put around a text
    limit: int | None = None
    forecast: Callable[[str, int, Lengths], Estimate | None] | None = None


def check(
    where: DataLocation,
    *,
    dev: DataLocation | None = None,
    task: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    labels: str | None = None,
    scheme: str | None = None,
    encoding: str | None = None,
    skip_bad: str | Path | None = None,
    reading: Reading | None = None,
    progress: OnProgress | None = None,
) -> Report:
    """Look through data, and through `dev` or the other splits of its folder besides it.

    `reading` is the model whose tokens are counted; without one they are estimated from words. `progress` receives
    the rows read so far.
    """
    began = time.monotonic()
    run = _Run(reading or Reading(), progress)
    run.task, run.kind = task, labels
    told = {
        "task": task,
        "format": format,
        "columns": columns,
        "labels": labels,
        "scheme": scheme,
        "encoding": encoding,
    }
    parts = _parts(where, dev)
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

    def __init__(self, reading: Reading, progress: OnProgress | None) -> None:
        self.reading, self.progress = reading, progress
        self.gather, self.rows, self.complete = Gather(), Rows(), True
        self.readers: dict[str, Reader] = {}
        self.task: str | None = None  # what the user said, as `kind` of labels
        self.kind: str | None = None
        self.labels = Labels(self.gather)
        self.measure = Measure(self.gather, count=reading.count, frame=reading.frame, limit=reading.limit)
        self.checks: list[Check] = [
            self.rows,
            Texts(self.gather),
            self.labels,
            Spans(self.gather),
            Pairs(self.gather, self.rows),
            Languages(self.gather),
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
                row = seen(record, name)
                if header and _is_header(record, header):
                    self.gather.note("header-row", row.place, "the row repeats the header", split=name)
                    continue
                for one in self.checks:
                    one.see(row)
                if self.progress is not None and len(self.rows) % TELL == 0:
                    self.progress(Progress("rows", len(self.rows)))
            self._left_out(reader, name)
        except DataError as error:
            self.complete = False
            note_fault(self.gather, error, name, kind="unreadable")

    def _left_out(self, reader: Reader, split: str) -> None:
        """Rows that the file itself says not to use."""
        for reason, count in reader.excluded.items():
            place = Place(reader.sources[0][0].name)
            what = f"{counted(count, 'row')} left out: {reason}"
            self.gather.note("left-out", place, what, split=split, key=f"{split} {reason}", count=count)

    def _bad(self, error: DataError, split: str) -> None:
        note_fault(self.gather, error, split)

    def _marks(self, reader: Reader, split: str) -> None:
        """Files that begin with a byte order mark."""
        for sources in reader.sources:
            for source in sources:
                if source.path is not None and source.head(len(BOM)).startswith(BOM):
                    what = "the file begins with a byte order mark, which some tools read as a part of the first name"
                    self.gather.note("bom", Place(source.name, 1), what, split=split)

    def report(self) -> Report:
        first = next(iter(self.readers.values()), None)
        same = Same(self.gather, self.rows, task=None if first is None else first.schema.task)
        same.end()
        found = {type(one).__name__: one.end() for one in self.checks}
        if first is not None:
            self._hints(first)
        lengths: Lengths | None = found["Measure"]
        return Report(
            rows=len(self.rows),
            bad=sum(reader.bad_rows for reader in self.readers.values()),
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
            self.gather.note(hint.kind, place, hint.message, fix=hint.fix)

    def _estimate(self, first: Reader | None, lengths: Lengths | None) -> Estimate | None:
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
