"""Data that is in memory already: rows or columns in Python, and the tables of other packages.

Read are lists and iterators of dicts, dicts of columns, data frames (pandas, polars), `datasets.Dataset`, `DatasetDict`
and pyarrow tables. None of these packages is imported: a table is recognized by what it can do.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from regard.data.formats.lines import check_strings
from regard.data.rows import OnBadRow, Place, Row, describe_value
from regard.data.sources.sources import Source
from regard.errors import DataError
from regard.text.file_encodings import UTF8, EncodingGuess

NAME = "the data"
SPLITS = {  # names of each split in file names and in dicts of tables
    "train": ("train", "training"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test",),
}
CHUNK = 1024  # rows of an Arrow table that are Python objects at once
MISSING = ("NAType", "NaTType")  # what pandas has for a missing value, besides NaN
ROW = 'a dict such as {"text": "…", "label": "…"}'


def is_table(data: Any) -> bool:
    """Whether this is a table of another package, by what it can do."""
    if isinstance(data, str | bytes | Path | Mapping):
        return False
    arrow = hasattr(data, "to_pylist") and hasattr(data, "column_names")
    frame = hasattr(data, "shape") and hasattr(data, "__getitem__") and hasattr(data, "columns")
    dataset = hasattr(data, "column_names") and hasattr(data, "__iter__")
    return arrow or frame or dataset


def in_memory(data: Any) -> bool:
    """Whether these are rows or columns, not the names of files."""
    if isinstance(data, str | bytes | Path):
        return False
    if isinstance(data, Mapping | Iterator) or is_table(data):
        return True
    if isinstance(data, Sequence):
        return len(data) > 0 and not isinstance(data[0], str | bytes | Path)
    return isinstance(data, Iterable)


def splits_in_memory(data: Any) -> dict[str, Any]:
    """The tables of a dict such as `DatasetDict`, by their split: train, valid or test; else none."""
    if not isinstance(data, Mapping) or not data or not all(_holds_rows(value) for value in data.values()):
        return {}
    collected = {}
    for split, names in SPLITS.items():
        key = next((key for key in data if str(key).lower() in names), None)
        if key is not None:
            collected[split] = data[key]
    if not collected:
        keys = ", ".join(map(str, data))
        raise DataError(f"the data is a dict of tables ({keys:.80})", expected="some of train, valid and test")
    return collected


def _holds_rows(value: Any) -> bool:
    if is_table(value):
        return True
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


class MemorySource(Source):
    """Rows in memory, in the place of a file. Those of an iterator can be read once."""

    def __init__(self, data: Any, split: str | None = None) -> None:
        splits = splits_in_memory(data)
        if splits:
            split = split or next(iter(splits))
            if split not in splits:
                raise DataError(f'has no split "{split}"', file=NAME, fix=f"It has: {', '.join(splits)}.")
        self.data = data if split is None else splits.get(split, data)
        self.name = f"{NAME}, {split}," if splits else NAME
        self.path = None
        self.encoding = None
        self.sheet = None
        self.single_pass = isinstance(self.data, Iterator)
        self._sampled: list[Any] = []
        self._started = False

    @property
    def suffix(self) -> str:
        return ""

    def head(self, size: int = 0) -> bytes:
        """Nothing: rows in memory have no bytes."""
        return b""

    def detected_encoding(self) -> EncodingGuess:
        """Text in memory has no encoding."""
        return EncodingGuess(UTF8, "")

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Refused: rows in memory have no bytes."""
        raise DataError("is in memory, not in a file", file=self.name)
        yield

    def sample(self, count: int) -> list[dict[str, Any]]:
        """The first rows that can be read."""
        if self.single_pass and not self._started:
            self._sampled += itertools.islice(self.data, max(count - len(self._sampled), 0))
            items: Iterable[Any] = self._sampled
        else:
            items = _items(self.data, self.name)
        rows = self._rows(itertools.islice(items, count), lambda error, raw: None)
        return [row.values for row in rows]

    def rows(self, bad: OnBadRow) -> Iterator[Row]:
        """Every row, with its number."""
        if not self.single_pass:
            yield from self._rows(_items(self.data, self.name), bad)
            return
        if self._started:
            raise DataError("can be read only once", file=self.name, fix="Give a list to read it again.")
        self._started = True
        sampled, self._sampled = self._sampled, []
        yield from self._rows(itertools.chain(sampled, self.data), bad)

    def _rows(self, items: Iterable[Any], bad: OnBadRow) -> Iterator[Row]:
        names = _class_names(self.data)
        for number, item in enumerate(items, 1):
            place = Place(self.name, None, number)
            try:
                values = _values(item, place, names)
            except DataError as error:
                bad(error, repr(item)[:1000])
                continue
            yield Row(place, values, "")


def table_rows(data: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table or of a dict of columns, as dicts."""

    def stop(error: DataError, raw: str) -> None:
        raise error

    return (row.values for row in MemorySource(data).rows(stop))


def _items(data: Any, name: str) -> Iterator[Any]:
    """The rows of a table, or of what can be gone through."""
    if hasattr(data, "to_batches"):  # a pyarrow table
        for batch in data.to_batches(max_chunksize=CHUNK):
            yield from batch.to_pylist()
    elif hasattr(data, "to_pylist"):  # a pyarrow record batch
        yield from data.to_pylist()
    elif isinstance(data, Mapping):
        yield from _in_rows({str(column): values for column, values in data.items()}, name)
    elif hasattr(data, "iter_rows") and is_table(data):  # a polars frame, whose lists are Series column by column
        yield from data.iter_rows(named=True)
    elif hasattr(data, "columns") and is_table(data):
        yield from _in_rows(_frame_columns(data, name), name)
    else:
        yield from data


def _frame_columns(frame: Any, name: str) -> dict[str, Any]:
    columns = list(frame.columns)
    collected = {str(column): frame[column] for column in columns}
    if len(collected) < len(columns):
        raise DataError("two columns have the same name", file=name, expected="a different name for each column")
    return collected


def _in_rows(columns: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Columns of one length as rows."""
    lengths = {}
    for column, values in columns.items():
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            what = f'the column "{column:.40}" is {describe_value(values)}'
            raise DataError(what, file=name, expected="a list of values, or a list of dicts for rows")
        lengths[column] = len(values)
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{column} {count}" for column, count in lengths.items())
        raise DataError(f"the columns differ in length ({counts:.120})", file=name, expected="one value for each row")
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _class_names(data: Any) -> dict[str, Sequence[str]]:
    """The names of classes that a `datasets.Dataset` holds as numbers, by column."""
    features = getattr(data, "features", None)
    if not isinstance(features, Mapping):
        return {}
    collected = {}
    for column, feature in features.items():
        if isinstance(feature, list) and len(feature) == 1:
            feature = feature[0]
        feature = getattr(feature, "feature", feature)  # of a sequence: what is in it
        names = getattr(feature, "names", None)
        if isinstance(names, Sequence) and not isinstance(names, str):
            collected[str(column)] = names
    return collected


def _values(item: Any, place: Place, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise place.value_error(item, expected=ROW)
    values = {str(column): to_python(value) for column, value in item.items()}
    for column, classes in names.items():
        if column in values:
            values[column] = _named(values[column], classes, place, column)
    check_strings(values, place, "")
    return values


def _named(value: Any, classes: Sequence[str], place: Place, column: str) -> Any:
    if isinstance(value, list):
        return [_named(one, classes, place, column) for one in value]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if value == -1:  # how datasets marks rows without a label
        return None
    if not 0 <= value < len(classes):
        expected = f"a class from 0 to {len(classes) - 1}"
        raise place.error(f"is {value}", column=column, expected=expected, kind="bad-label")
    return classes[value]


def to_python(value: Any) -> Any:
    """A value as Python's own types have it; None where it is missing (NaN, NA, NaT)."""
    if hasattr(value, "as_py"):  # a pyarrow scalar
        return to_python(value.as_py())
    if hasattr(value, "tolist"):  # numpy's strings, numbers and arrays
        return to_python(value.tolist())
    if isinstance(value, float) and math.isnan(value):
        return None
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, Mapping):
        return {str(name): to_python(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_python(one) for one in value]
    return value
