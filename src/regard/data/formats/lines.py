"""Lines of text files: numbered, decoded and checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from regard.data.rows import MAX_LINE_BYTES, OnBadRow, Place
from regard.errors import DataError

BOM = b"\xef\xbb\xbf"


def read_lines(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[tuple[int, str]]:
    """Numbered lines with their line ends. Lines that are not UTF-8 or contain NUL go to `bad`."""
    for number, text, fault in read_lines_with_errors(stream, name):
        if fault is None:
            yield number, text
        else:
            bad(fault, text)


def read_lines_with_errors(stream: BinaryIO, name: str) -> Iterator[tuple[int, str, DataError | None]]:
    """Numbered lines, each with its error or None."""
    for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES), b""), 1):
        if number == 1:
            raw = raw.removeprefix(BOM)
        if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
            raise DataError(
                f"is longer than {MAX_LINE_BYTES >> 20} MB", file=name, line=number, expected="rows on lines"
            )
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            yield number, raw.decode("utf-8", "backslashreplace"), _not_utf8(error, raw, name, number)
            continue
        yield number, text, _nul(text, name, number) if "\0" in text else None


def _nul(text: str, name: str, number: int) -> DataError:
    what = f"character {text.index(chr(0)) + 1} is a NUL, which belongs in no text"
    return DataError(what, file=name, line=number, fix=f"Take them out: tr -d '\\000' < {name}", kind="nul")


def _not_utf8(error: UnicodeDecodeError, raw: bytes, name: str, number: int) -> DataError:
    what = f"byte {error.start + 1} (0x{raw[error.start]:02X}) is not UTF-8"
    fix = "If it has another encoding, name it: --encoding cp1252 (encoding= in Python)."
    return DataError(what, file=name, line=number, expected="text in UTF-8", fix=fix, kind="not-utf8")


def strip_line_end(line: str) -> str:
    """A line without its line end."""
    return line.removesuffix("\n").removesuffix("\r")


def check_strings(value: Any, place: Place, column: str) -> None:
    """Reject NUL and lone surrogates, which JSON and Parquet can contain but text files cannot."""
    if isinstance(value, str):
        if "\0" in value:
            what = f"character {value.index(chr(0)) + 1} is a NUL, which belongs in no text"
            raise place.error(what, column=column, kind="nul")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            what = f"character {error.start + 1} is half of a surrogate pair (U+{ord(value[error.start]):04X})"
            fix = "Write the whole character, or take it out."
            raise place.error(what, column=column, fix=fix, kind="surrogate") from error
    elif isinstance(value, dict):
        for name, inner in value.items():
            check_strings(inner, place, f"{column}.{name}" if column else str(name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            check_strings(inner, place, f"{column}[{number}]")
