"""Options that the training data was read with; other files are read with the same options if they fit."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from regard.data.formats.format import FIRST_READ
from regard.data.readers import Reader
from regard.data.records import all_roles
from regard.data.schema.options import read_options
from regard.data.sources.sources import Source
from regard.errors import DataError
from regard.text.decompress import decompressed
from regard.text.file_encodings import UTF8, detect_encoding

LABELS = ("label", "answers", "tags", "entities", "target")  # columns that data without labels does not have

SCANNED = 256  # chunks of a file

Sources = list[tuple[Source, ...]]
ColumnNames = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class TrainingReadOptions:
    """From run.json: columns by what they are, the separator between several labels, and the encoding."""

    columns: ColumnNames = field(default_factory=dict)
    separator: str | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, data: Any) -> TrainingReadOptions:
        """What the part of run.json about the data says; nothing where it is not as a training writes it."""
        if not isinstance(data, dict):
            return cls()
        named, separator, encoding = (data.get(name) for name in ("columns", "separator", "encoding"))
        columns = {role: _column(name) for role, name in named.items()} if isinstance(named, dict) else {}
        return cls(
            {role: name for role, name in columns.items() if name and role in all_roles()},
            separator if isinstance(separator, str) and separator else None,
            encoding if isinstance(encoding, str) and encoding else None,
        )

    def columns_in(self, sources: Sources, task: str, **options: Any) -> ColumnNames | None:
        """The columns that were named for the training, all or without those of labels, where this data has them.

        options: further arguments of `read_options`, such as format and encoding.
        """
        texts = {role: name for role, name in self.columns.items() if role not in LABELS}
        for named in (self.columns, texts):
            if named and has_columns(sources, named, task=task, **options):
                return named
        return None

    def encoding_of(self, sources: Sources) -> str | None:
        """The encoding that was named for the training, where these files are not in UTF-8."""
        if self.encoding in (None, UTF8):
            return None
        for source in chain.from_iterable(sources):
            if source.path is None or source.single_pass:
                return None
            if not _is_utf8(source):
                return self.encoding
        return None


def _is_utf8(source: Source) -> bool:
    """Whether the file is UTF-8, as far as it is looked through."""
    assert source.path is not None
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with source.path.open("rb") as raw:
            stream = decompressed(raw, source.name)
            first = stream.read(FIRST_READ)
            for chunk in chain([first], islice(iter(lambda: stream.read(FIRST_READ), b""), SCANNED)):
                decoder.decode(chunk)
    except UnicodeDecodeError:
        return False
    except (OSError, DataError):  # which the reader reports
        return True
    return detect_encoding([first]).name == UTF8


def has_columns(sources: Sources, named: Mapping[str, Any], **options: Any) -> bool:
    """Whether data has these columns. Numbers of columns are meant for files whose columns have no names."""
    try:
        schema = Reader(sources, read_options(columns=named, **options)).schema
    except DataError:
        return False
    return not (schema.header and any(str(name).isdigit() for name in named.values()))


def _column(name: Any) -> str | tuple[str, ...]:
    if isinstance(name, str):
        return name
    several: Sequence[Any] = name if isinstance(name, list) else ()
    return tuple(one for one in several if isinstance(one, str))
