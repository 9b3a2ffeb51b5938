"""Read records one at a time from a path, a folder, a glob, two aligned files or stdin.

    reader = read("reviews.csv", columns={"text": "review", "label": "stars"})
    reader.schema  # format, task and columns, and how they were inferred
    for record in reader: ...

A reader holds one row at a time, or a few sentences of a document, whatever the size of the file. A row that cannot be
used stops it with a DataError that says where and what; with `skip_bad` such rows are counted and written to a file
instead.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from regard.data.atomic import check_output_path, open_text
from regard.data.formats.json.annotations import convert_rows
from regard.data.formats.lines import read_lines
from regard.data.formats.plain_text import aligned_rows
from regard.data.formats.registry import formats
from regard.data.records import Record
from regard.data.records.neighbors import add_neighbors
from regard.data.rows import ExcludedRow, OnBadRow, Row
from regard.data.schema.columns import Columns
from regard.data.schema.infer_schema import infer_schema
from regard.data.schema.options import read_options
from regard.data.schema.schema import ReadOptions, Schema
from regard.data.sources.aligned import aligned_schema, file_suffixes
from regard.data.sources.locate import DataLocation, find_sources, split_files
from regard.data.sources.memory import MemorySource, splits_in_memory
from regard.data.sources.sources import Source
from regard.errors import DataError, pluralize, shorten
from regard.foreign import file_errors


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

    data: a path, a list of paths, a folder with train, valid and test (see `split`), a glob, two aligned files as a
        tuple or as "a.en,a.de", or "-" for stdin; or rows in memory: dicts, a dict of columns, a data frame, a Dataset.
    columns: the column of each role, by name or by number from 0: {"text": "review", "label": "stars"}; for one-hot
        labels, several columns: {"label": ["billing", "login"]}.
    labels: single, multi (a list, or names separated by |, ; or a comma), number, or class (single, and separators are
        part of the name).
    scheme: how tags are written: iob1, iob2, iobes, bilou, plain.
    encoding: of the files, such as "cp1252"; detected if not given, and reported if it is not UTF-8.
    like: the schema of another file; task, labels and tags are then read in the same way.
    skip_bad: a file to which unusable rows are written as JSON lines, with the reason, instead of raising an error.
    on_bad: called with the error of each unusable row, instead or in addition.
    """
    if like is not None:
        task = task or like.task
        labels = labels or like.labels
        scheme = scheme or like.scheme
    separator = like.style.separator if like is not None and like.labels == "multi" else None
    options = read_options(
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
    return Reader(groups, options, skip_bad=None if skip_bad is None else Path(skip_bad), on_bad=on_bad)


def split_names(data: DataLocation) -> tuple[str, ...]:
    """The splits (train, valid, test) of a folder or of a dict of tables. Empty for everything else."""
    if not isinstance(data, str | Path):
        return tuple(splits_in_memory(data))
    path = Path(data).expanduser()
    if path.is_dir():
        return tuple(split_files(path))
    return ()


class Reader:
    """Records of one or more files, in order. It can be iterated again, unless it reads stdin.

    `rows` and `bad_rows` count the records and the skipped rows of the latest pass; `excluded` counts, by reason, the
    rows that the file itself marks as not to be used. `check` may be set to a function that raises DataError for a
    record that cannot be used.
    """

    def __init__(
        self,
        sources: list[tuple[Source, ...]],
        options: ReadOptions,
        *,
        skip_bad: Path | None = None,
        on_bad: Callable[[DataError], None] | None = None,
    ) -> None:
        self.sources = sources
        self.options = options
        self.skip_bad = skip_bad
        self.on_bad = on_bad
        self.rows = 0
        self.bad_rows = 0
        for source in itertools.chain.from_iterable(sources):
            source.encoding = options.encoding
        self.excluded: Counter[str] = Counter()
        self.check: Callable[[Record], None] | None = None
        self._callback_error: BaseException | None = None  # raised by `on_bad`
        self._check_skip_bad()
        self.schema = self._schema_of(sources[0], options)

    @property
    def summary(self) -> str:
        """The schema in words, with the task given by the user, and how many rows were excluded in the latest pass."""
        schema = self.schema.describe(self.options.task_name or self.schema.task)
        if not self.excluded:
            return schema
        counts = ", ".join(f"{count:,} {reason}" for reason, count in self.excluded.most_common())
        return f"{schema}; excluded rows: {counts}"

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.with_rows())

    def with_rows(self) -> Iterator[tuple[Row, Record]]:
        """The records, each with the row that it was made from."""
        self.rows = 0
        self.bad_rows = 0
        self.excluded.clear()
        with contextlib.ExitStack() as stack:
            on_bad = self._bad_row_handler(stack)
            for sources, schema in self.parts():
                before = self.rows
                with self._reading(sources[0].name):
                    for row, record in add_neighbors(_records(sources, schema, on_bad, self.check)):
                        self.rows += 1
                        yield row, record
                if self.rows == before:
                    raise self._no_rows(sources[0].name)

    def lines(self) -> Iterator[tuple[str, bool]]:
        """The lines of plain text, with blank ones, each with whether it is the first line of a file."""
        self.rows = 0
        self.bad_rows = 0
        with contextlib.ExitStack() as stack:
            on_bad = self._bad_row_handler(stack)
            for (source,), _ in self.parts():
                is_first = True
                with self._reading(source.name), source.open() as stream:
                    for _, line in read_lines(stream, source.name, on_bad):
                        self.rows += 1
                        yield line.replace("\r\n", "\n"), is_first
                        is_first = False

    def parts(self) -> Iterator[tuple[tuple[Source, ...], Schema]]:
        """Every file, or two aligned ones, with its schema."""
        for number, sources in enumerate(self.sources):
            yield sources, self.schema if number == 0 else self._schema_of(sources, self._options_like_first())

    def _schema_of(self, sources: tuple[Source, ...], options: ReadOptions) -> Schema:
        for source in sources:
            source.detected_encoding()  # may warn; outside of `file_errors`, as the warning may be turned into an error
        with file_errors(sources[0].name, DataError):
            if len(sources) == 2:
                return aligned_schema(sources, options)
            return infer_schema(sources[0], options)

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Errors of a format's reader become DataErrors; errors raised by `on_bad` are raised unchanged."""
        try:
            with file_errors(name, DataError):
                yield
        except DataError:
            if self._callback_error is not None:
                raise self._callback_error from None
            raise

    def _options_like_first(self) -> ReadOptions:
        """The other files are read like the first."""
        first = self.schema
        separator = first.style.separator if first.labels == "multi" else None
        return replace(self.options, task=first.task, labels=first.labels, scheme=first.scheme, separator=separator)

    def _no_rows(self, name: str) -> DataError:
        details = f": {pluralize(self.bad_rows, 'bad row')} and no other" if self.bad_rows else ""
        if self.excluded:
            details = f": {', '.join(f'{count:,} {reason}' for reason, count in self.excluded.most_common())}"
        return DataError(f"has no usable row{details}", file=name, expected="at least one")

    def _check_skip_bad(self) -> None:
        """The file of bad rows must not overwrite the data."""
        if self.skip_bad is None:
            return
        sources = itertools.chain.from_iterable(self.sources)
        inputs = [source.path or "-" for source in sources if source.path or source.name == "stdin"]
        check_output_path(self.skip_bad, "skip_bad", inputs=inputs)

    def _bad_row_handler(self, stack: contextlib.ExitStack) -> OnBadRow:
        """The function called with each bad row: it raises the error, or counts the row and writes it to a file."""
        raises = self.skip_bad is None and self.on_bad is None
        file = None if self.skip_bad is None else stack.enter_context(open_text(self.skip_bad))

        def handle(error: DataError, raw: str) -> None:
            if isinstance(error, ExcludedRow):
                self.excluded[error.message] += 1
                return
            if raises:
                raise error
            self.bad_rows += 1
            try:
                if file is not None:
                    file.write(json.dumps(_bad_row_json(error, raw)) + "\n")
                if self.on_bad is not None:
                    self.on_bad(error)
            except BaseException as raised:
                self._callback_error = raised
                raise

        return handle


def _bad_row_json(error: DataError, raw: str) -> dict[str, Any]:
    """A bad row as a JSON object: `problem` is the error alone, `message` the whole sentence with its location."""
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


def _records(
    sources: tuple[Source, ...], schema: Schema, on_bad: OnBadRow, check: Callable[[Record], None] | None
) -> Iterator[tuple[Row, Record]]:
    parse = schema.parser()
    for row in rows_of(sources, schema, on_bad):
        try:
            record = parse(row)
            if check is not None:
                check(record)
        except DataError as error:
            on_bad(error, row.raw or json.dumps(row.values, ensure_ascii=False, default=str))
            continue
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            reason = shorten(f"{type(error).__name__}: {error}", 100)
            on_bad(row.place.error(f"cannot be used: {reason}"), row.raw)
            continue
        yield row, record


def rows_of(sources: tuple[Source, ...], schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """The rows of a file, or of two aligned ones, before they become records."""
    if isinstance(sources[0], MemorySource):
        yield from _converted(sources[0].rows(on_bad), schema, on_bad)
        return
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(source.open()) for source in sources]
        if len(streams) == 2:
            names = (sources[0].name, sources[1].name)
            yield from aligned_rows(streams[0], streams[1], names, file_suffixes(sources), on_bad)
        else:
            yield from read_rows(streams[0], sources[0].name, schema, on_bad)


def read_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """The rows of an open file; those of an annotation tool are converted to plain rows."""
    return _converted(formats()[schema.format].rows(stream, name, schema, on_bad), schema, on_bad)


def _converted(rows: Iterator[Row], schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    if not schema.export:
        return rows
    return convert_rows(rows, schema.export, schema.columns, on_bad, labeled=schema.task != "text")
