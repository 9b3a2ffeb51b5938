"""From a path, a folder, a glob, two aligned files or stdin to records, one at a time.

    reader = read("reviews.csv", columns={"text": "review", "label": "stars"})
    reader.schema  # format, task and columns, and how they were inferred
    for record in reader: ...

A reader holds one row at a time, whatever the size of the file. A row that cannot be used stops it with a DataError
that says where and what; with `skip_bad` such rows are counted and written to a file instead.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.atomic import check_output_path, open_text
from regard.data.formats import plain_text as texts
from regard.data.formats.detect import check_text
from regard.data.formats.json_files import splits_inside
from regard.data.formats.lines import ExcludedRow, OnBadRow, Row
from regard.data.formats.lines import read_lines as numbered
from regard.data.memory import MemorySource, splits_in_memory
from regard.data.names import Columns
from regard.data.recognize import ReadOptions, Schema, convert_export, infer_schema, rows
from regard.data.records import Record
from regard.data.sources import DataLocation, Source, find_sources, holds_splits, split_files, suffix_of
from regard.errors import DataError, pluralize, shorten
from regard.foreign import file_errors

BEGINNING = 4096  # bytes that show whether a file holds several splits


def read(
    data: DataLocation,
    *,
    split: str | None = None,
    task: str | None = None,
    format: str | None = None,
    columns: Columns | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    labels: str | None = None,
    scheme: str | None = None,
    encoding: str | None = None,
    like: Schema | None = None,
    skip_bad: str | Path | None = None,
    on_bad: Callable[[DataError], None] | None = None,
) -> Reader:
    """A reader of records. Options that are not given are inferred from the content.

    where: a path, a list of paths, a folder with train, valid and test (see `split`), a glob, two aligned files as a
        tuple or as "a.en,a.de", or "-" for stdin; or rows in memory: dicts, a dict of columns, a data frame, a Dataset.
    columns: which column is what, by name or by number from 0: {"text": "review", "label": "stars"}; for labels in
        columns of their own, with 1 where they apply, {"label": ["billing", "login"]}.
    labels: single, multi (a list, or names separated by |, ; or a comma), number, or class (single, and separators are
        part of the name).
    scheme: how tags are written: iob1, iob2, iobes, bilou, plain.
    encoding: of the files, such as "cp1252"; UTF-8 unless their bytes show another one, which is then reported.
    like: the schema of another file; task, labels and tags are then read in the same way.
    skip_bad: where rows that cannot be used are written as JSON lines, with the reason.
    on_bad: called with the reason for each of them instead, or besides.
    """
    if like is not None:
        task, labels, scheme = task or like.task, labels or like.labels, scheme or like.scheme
    separator = like.style.separator if like is not None and like.labels == "multi" else None
    told = ReadOptions.validated(
        columns=columns,
        task=task,
        format=format,
        header=header,
        quoting=quoting,
        labels=labels,
        scheme=scheme,
        encoding=encoding,
        separator=separator,
    )
    with file_errors(shorten(str(data), 100), DataError):
        groups = find_sources(data, split=split)
    return Reader(groups, told, skip_bad=None if skip_bad is None else Path(skip_bad), on_bad=on_bad)


def split_names(data: DataLocation) -> tuple[str, ...]:
    """The splits of a folder, of a JSON object with a list for each, or of a dict of tables: some of train, valid and
    test; none of anything else."""
    if not isinstance(data, str | Path):
        return tuple(splits_in_memory(data))
    path = Path(data).expanduser()
    if path.is_dir():
        return tuple(split_files(path))
    return _splits_inside(path) if path.is_file() and suffix_of(path) in (".json", "") else ()


def _splits_inside(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError:  # said when it is read
        return ()
    if not holds_splits(beginning):
        return ()
    source = Source(path)
    with source.open() as stream:
        return splits_inside(stream, source.name)


class Reader:
    """Records of one or more files, in order. It can be gone through again, unless it reads stdin.

    `rows` and `bad` count the records and the rows skipped so far in the latest pass; `left_out` counts, by reason, the
    rows that the file itself says not to use.
    """

    def __init__(
        self,
        sources: list[tuple[Source, ...]],
        told: ReadOptions,
        *,
        skip_bad: Path | None = None,
        on_bad: Callable[[DataError], None] | None = None,
    ) -> None:
        self.sources, self.options, self.skip_bad, self.on_bad = sources, told, skip_bad, on_bad
        self.rows, self.bad_rows = 0, 0
        for source in itertools.chain.from_iterable(sources):
            source.encoding = told.encoding
        self.excluded: Counter[str] = Counter()
        self._thrown: BaseException | None = None  # by `on_bad`, which is not about the data
        self._check_skip_bad()
        self.schema = self._look(sources[0], told)

    @property
    def summary(self) -> str:
        """The schema in words, and how many rows were excluded in the latest pass."""
        if not self.excluded:
            return str(self.schema)
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.excluded.most_common())
        return f"{self.schema}; rows left out: {counts}"

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.with_rows())

    def with_rows(self) -> Iterator[tuple[Row, Record]]:
        """The records, each with the row that it was made from."""
        self.rows, self.bad_rows = 0, 0
        self.excluded.clear()
        with contextlib.ExitStack() as stack:
            bad = self._bad(stack)
            for sources, found in self.parts():
                before = self.rows
                with self._reading(sources[0].name):
                    for row, record in _records(sources, found, bad):
                        self.rows += 1
                        yield row, record
                if self.rows == before:
                    self._nothing(sources[0].name)

    def lines(self) -> Iterator[tuple[str, bool]]:
        """The lines of plain text as they stand, blank ones too, and whether a file begins with them."""
        self.rows, self.bad_rows = 0, 0
        with contextlib.ExitStack() as stack:
            bad = self._bad(stack)
            for (source,), _ in self.parts():
                begins = True
                with self._reading(source.name), source.open() as stream:
                    for _, line in numbered(stream, source.name, bad):
                        self.rows += 1
                        yield line.replace("\r\n", "\n"), begins
                        begins = False

    def parts(self) -> Iterator[tuple[tuple[Source, ...], Schema]]:
        """Every file, or two aligned ones, with its schema."""
        for number, sources in enumerate(self.sources):
            yield sources, self.schema if number == 0 else self._look(sources, self._same())

    def _look(self, sources: tuple[Source, ...], told: ReadOptions) -> Schema:
        for source in sources:
            source.detected_encoding()  # which may warn, and a warning may be an error that is not about the data
        with file_errors(sources[0].name, DataError):
            if len(sources) == 2:
                return _aligned(sources, told)
            return infer_schema(sources[0], told)

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Whatever a reader of a format raises becomes a DataError; what `on_bad` raises stays what it is."""
        try:
            with file_errors(name, DataError):
                yield
        except DataError:
            if self._thrown is not None:
                raise self._thrown from None
            raise

    def _same(self) -> ReadOptions:
        """The other files are read like the first."""
        found = self.schema
        separator = found.style.separator if found.labels == "multi" else None
        return replace(self.options, task=found.task, labels=found.labels, scheme=found.scheme, separator=separator)

    def _nothing(self, name: str) -> None:
        bad = f": {pluralize(self.bad_rows, 'bad row')} and no other" if self.bad_rows else ""
        if self.excluded:
            bad = f": {', '.join(f'{count:,} {reason}' for reason, count in self.excluded.most_common())}"
        raise DataError(f"holds no row that can be used{bad}", file=name, expected="at least one")

    def _check_skip_bad(self) -> None:
        """The list of bad rows must not take the place of the data."""
        if self.skip_bad is None:
            return
        every = itertools.chain.from_iterable(self.sources)
        read = [
            "-" if source.path is None else source.path for source in every if source.path or source.name == "stdin"
        ]
        check_output_path(self.skip_bad, "skip_bad", inputs=read)

    def _bad(self, stack: contextlib.ExitStack) -> OnBadRow:
        """What happens to a bad row: it stops the reading, or is counted and written down."""
        stops = self.skip_bad is None and self.on_bad is None
        file = None if self.skip_bad is None else stack.enter_context(open_text(self.skip_bad))

        def note(error: DataError, raw: str) -> None:
            if isinstance(error, ExcludedRow):
                self.excluded[error.message] += 1
                return
            if stops:
                raise error
            self.bad_rows += 1
            try:
                if file is not None:
                    file.write(json.dumps(_noted(error, raw)) + "\n")
                if self.on_bad is not None:
                    self.on_bad(error)
            except BaseException as thrown:
                self._thrown = thrown
                raise

        return note


def _noted(error: DataError, raw: str) -> dict[str, Any]:
    """One bad row as a JSON object: `problem` is what is wrong in it, `message` the whole sentence with its place."""
    return {
        "file": error.file,
        "line": error.line,
        "row": error.row,
        "column": error.column,
        "problem": error.message,
        "expected": error.expected,
        "fix": error.fix,
        "message": str(error),
        "raw": raw,
    }


def _records(sources: tuple[Source, ...], found: Schema, bad: OnBadRow) -> Iterator[tuple[Row, Record]]:
    make = found.parser()
    for row in rows_of(sources, found, bad):
        try:
            record = make(row)
        except DataError as error:
            bad(error, row.raw or json.dumps(row.values, ensure_ascii=False, default=str))
            continue
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = shorten(f"{type(error).__name__}: {error}", 100)
            bad(row.place.error(f"cannot be used: {reason}"), row.raw)
            continue
        yield row, record


def rows_of(sources: tuple[Source, ...], schema: Schema, bad: OnBadRow) -> Iterator[Row]:
    """The rows of a file, or of two aligned ones, before they become records."""
    if isinstance(sources[0], MemorySource):
        yield from convert_export(sources[0].rows(bad), schema, bad)
        return
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(source.open()) for source in sources]
        if len(streams) == 2:
            names, ends = (sources[0].name, sources[1].name), _ends(sources)
            yield from texts.aligned_rows(streams[0], streams[1], names, ends, bad)
        else:
            yield from rows(streams[0], sources[0].name, schema, bad)


def _ends(sources: tuple[Source, ...]) -> tuple[str, str]:
    """What tells two aligned files apart: the ends of their names, or their order."""
    first, second = (source.suffix.removeprefix(".") for source in sources)
    return ("0", "1") if first == second else (first, second)


def _aligned(sources: tuple[Source, ...], told: ReadOptions) -> Schema:
    """Two files whose lines belong together; they are named by the ends of their names."""
    if told.task not in (None, "translate") or told.format not in (None, "aligned"):
        raise DataError("two aligned files were given, for the task translate", expected=f"data for {told.task}")
    for source in sources:
        check_text(source.head(), source.name)
    ends = _ends(sources)
    columns = dict(zip(("source", "target"), ends, strict=True))
    for role, end in told.columns.items():
        if role not in columns or end not in ends:
            raise DataError(
                f'there is no file to be the {role} "{end}"', expected=f"source or target, {' or '.join(ends)}"
            )
        other = ends[1 - ends.index(end)]
        columns = {"source": end, "target": other} if role == "source" else {"source": other, "target": end}
    return Schema("aligned", "translate", columns, "two files were given, line by line", header=False)
