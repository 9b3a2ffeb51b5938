"""Every file format, in the order in which they are tried on a file of unknown format."""

from __future__ import annotations

from collections.abc import Mapping

from regard.data.formats.conll import CONLL
from regard.data.formats.delimited.delimited import CSV, TSV
from regard.data.formats.excel import EXCEL
from regard.data.formats.format import FileStart, Format
from regard.data.formats.json.json_files import JSON, JSONL
from regard.data.formats.parquet import PARQUET
from regard.data.formats.plain_text import ALIGNED, LINES, TEXT
from regard.errors import InputError

_FORMATS: dict[str, Format] = {
    one.name: one for one in (PARQUET, EXCEL, JSON, JSONL, CONLL, TSV, CSV, TEXT, LINES, ALIGNED)
}


def register_format(added: Format) -> None:
    """Add a format. It is tried before the built-in ones."""
    _FORMATS.pop(added.name, None)
    earlier = dict(_FORMATS)
    _FORMATS.clear()
    _FORMATS.update({added.name: added, **earlier})


def unregister_format(name: str) -> None:
    """Remove a format, such as one that a test has added."""
    if name not in _FORMATS:
        raise InputError(f'there is no format "{name}". Registered: {", ".join(_FORMATS)}.')
    del _FORMATS[name]


def formats() -> Mapping[str, Format]:
    """Every format by name."""
    return _FORMATS


def format_names() -> tuple[str, ...]:
    """The names a user can give."""
    return tuple(name for name, one in _FORMATS.items() if one.read_as is None)


def detect_format(start: FileStart) -> tuple[Format, str]:
    """The format of a file, and the reason for it."""
    for one in _FORMATS.values():
        reason = one.sniff(start)
        if reason is not None:
            return one, reason
    raise AssertionError("plain text accepts every file")


def table_suffixes() -> tuple[str, ...]:
    """Ends of names of files with columns."""
    return tuple(suffix for one in _FORMATS.values() if not one.plain_text for suffix in one.suffixes)


def known_suffixes() -> tuple[str, ...]:
    """Ends of names of files of any format; "" is a name without an end."""
    return (*(suffix for one in _FORMATS.values() for suffix in one.suffixes), "")
