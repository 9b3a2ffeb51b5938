"""What is known about a dataset before its rows are read: the options given by the user, and the inferred schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from regard.data.labels import SINGLE, LabelStyle
from regard.data.records import ColumnMap, Record, record_types
from regard.data.rows import Row
from regard.text.file_encodings import UTF8


@dataclass(frozen=True)
class ReadOptions:
    """Options given by the user about a file; None: inferred. Made by `regard.data.schema.options.read_options`."""

    columns: Mapping[str, str]
    format: str | None = None
    task: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    labels: str | None = None
    scheme: str | None = None
    encoding: str | None = None
    separator: str | None = None
    one_hot: tuple[str, ...] = ()
    task_name: str | None = None  # as given by the user; `task` is its record type


@dataclass(frozen=True)
class Schema:
    """How a file is read: its format, its record type (`task`), the column of each role, and the reason for these."""

    format: str
    task: str
    columns: Mapping[str, str]
    reason: str
    delimiter: str = ","
    header: bool = True
    quoting: bool = True
    style: LabelStyle = SINGLE
    scheme: str = "iob2"
    decimal_comma: str | None = None  # the column with numbers such as 3,5
    encoding: str = UTF8
    unused: tuple[str, ...] = ()  # columns without a role
    export: str = ""  # the annotation tool that wrote the rows, if they are converted before they are parsed

    @property
    def labels(self) -> str:
        """The kind of labels: single, class, multi or number."""
        return self.style.kind

    def parser(self) -> Callable[[Row], Record]:
        """The function that parses a row into a record."""
        from_row = record_types()[self.task].from_row
        columns = ColumnMap(self.columns, self.style, self.scheme)
        return lambda row: from_row(row, columns)

    def __str__(self) -> str:
        return self.describe(self.task)

    def describe(self, task: str) -> str:
        """The schema in words, for a task that reads this record type."""
        columns = ", ".join(f"{role}={name}" for role, name in self.columns.items())
        return f"{self.format} for {task} ({columns}): {self.reason}"
