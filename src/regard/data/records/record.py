"""What every record type defines, and the registry of record types.

A record type is one frozen dataclass that derives from `Record`:

    @register_record
    @dataclass(frozen=True, slots=True)
    class HeadlineRecord(Record):
        type_name = "headline"
        roles = (Role("headline", aliases=("headline", "title")), Role("clicks", aliases=("clicks",)))
        required = (("headline", "clicks"),)
        text_fields = ("headline",)

        headline: str
        clicks: float

        @classmethod
        def from_row(cls, row, columns):
            return cls(row.text(columns["headline"]), float(row.value(columns["clicks"])), **columns.common(row))

Readers, splits, the data check and vocabulary training then work with it without further changes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from regard.data.labels import Label, LabelStyle, parse_label
from regard.data.rows import NOWHERE, Place, Row
from regard.errors import InputError


@dataclass(frozen=True)
class Role:
    """What a column contains. A column whose name, in lower case, is one of the aliases gets the role automatically."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnMap(Mapping[str, str]):
    """The column of each role, and how its labels and tags are written."""

    names: Mapping[str, str]
    label_style: LabelStyle = field(default_factory=LabelStyle)
    tag_scheme: str = "iob2"

    def __getitem__(self, role: str) -> str:
        return self.names[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def label(self, row: Row) -> Label | None:
        """The label of a row; None if the data has no label column or the cell is empty."""
        column = self.names.get("label")
        return None if column is None else parse_label(row, column, self.label_style)

    def group(self, row: Row) -> str | None:
        """The group of a row; None if no column has this role."""
        column = self.names.get("group")
        return None if column is None else str(row.value(column))

    def common(self, row: Row) -> dict[str, Any]:
        """The fields that every record has."""
        return {"group": self.group(row), "place": row.place}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A parsed row. Offsets are code points of the text, end exclusive.

    type_name: the name of the record type; the `task` of a schema.
    tasks: names of further tasks that read this record type.
    roles: every column role of the type, in the order in which a schema lists them.
    required: alternatives of roles that must be there for data to be of this type.
    required_unlabeled: further alternatives, accepted if the user names the task (data without labels).
    optional: roles that are used if there.
    explicit: roles that are used only if the user names their columns.
    text_fields: the fields that are texts, in the order in which a model reads them.
    input_fields: the texts that identify the input; all text fields if empty.

    group: rows with the same group (an article, a patient, a user) stay on one side of a split.
    place: the location of the row.
    """

    type_name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ()
    roles: ClassVar[tuple[Role, ...]]
    required: ClassVar[tuple[tuple[str, ...], ...]]
    required_unlabeled: ClassVar[tuple[tuple[str, ...], ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    explicit: ClassVar[tuple[str, ...]] = ("group", "id", "impossible", "start")
    text_fields: ClassVar[tuple[str, ...]]
    input_fields: ClassVar[tuple[str, ...]] = ()

    group: str | None = None
    place: Place = NOWHERE

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> Record:
        """The record of a row. Raises DataError if a value is missing or of the wrong type."""
        raise NotImplementedError

    @classmethod
    def infer_roles(
        cls, columns: Mapping[str, str], roles: Mapping[str, str], named: Mapping[str, str]
    ) -> dict[str, str]:
        """Roles that follow from a combination of columns, not from a single alias.

        columns: every column by its name in lower case.
        roles: the column of each role that is known so far; `named` are those named by the user.
        """
        return {}

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The texts of the record as (field, text), in the order in which a model reads them."""
        return tuple((name, getattr(self, name)) for name in self.text_fields)

    @property
    def input_texts(self) -> tuple[str, ...]:
        """The stripped input texts, without labels: two records with equal input texts are duplicates."""
        return tuple(getattr(self, name).strip() for name in self.input_fields or self.text_fields)

    @property
    def annotation(self) -> str:
        """The labels of the record as a string, for comparing the annotations of duplicates."""
        return ""

    @property
    def stratum(self) -> str | float:
        """What a split is stratified by; numbers are divided into bins."""
        return ""

    @property
    def values(self) -> list[Any]:
        """Every field but the location, own fields first."""
        names = _VALUE_FIELDS.get(type(self))
        if names is None:
            names = (*(one.name for one in fields(self) if one.name not in ("group", "place")), "group")
            _VALUE_FIELDS[type(self)] = names
        return [getattr(self, name) for name in names]


RecordType = TypeVar("RecordType", bound=type[Record])

_TYPES: dict[str, type[Record]] = {}
_VALUE_FIELDS: dict[type[Record], tuple[str, ...]] = {}
_TASKS: dict[str, str] = {}  # registered by the tasks themselves


def register_record(record_type: RecordType) -> RecordType:
    """Add a record type. Types registered later are tried earlier when a schema is inferred from column names."""
    name = record_type.type_name
    _TYPES.pop(name, None)
    earlier = dict(_TYPES)
    _TYPES.clear()
    _TYPES.update({name: record_type, **earlier})
    column_aliases.cache_clear()
    return record_type


def unregister_record(name: str) -> None:
    """Remove a record type, such as one that a test has added."""
    if name not in _TYPES:
        raise InputError(f'there is no record type "{name}". Registered: {", ".join(_TYPES)}.')
    del _TYPES[name]
    column_aliases.cache_clear()


def record_types() -> Mapping[str, type[Record]]:
    """Every record type by name, in the order in which they are tried."""
    return _TYPES


@functools.cache
def column_aliases() -> Mapping[str, tuple[str, ...]]:
    """The column names by which each role is recognized, over all record types."""
    return {role.name: role.aliases for one in _TYPES.values() for role in one.roles if role.aliases}


def record_type_names() -> dict[str, str]:
    """The record type that each task reads, by task name."""
    named = {task: one.type_name for one in _TYPES.values() for task in one.tasks}
    return {**named, **_TASKS, **{name: name for name in _TYPES}}


def register_task(task: str, record_type: str) -> None:
    """Add the record type that a task is trained on, by name."""
    _TASKS[task] = record_type


def all_roles() -> Sequence[str]:
    """Every role that a column can have."""
    every = [role.name for one in _TYPES.values() for role in one.roles]
    explicit = [name for one in _TYPES.values() for name in one.explicit]
    return list(dict.fromkeys((*every, *explicit)))
