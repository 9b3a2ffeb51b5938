"""Lines of text files: numbered, decoded and checked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from regard.data.rows import MAX_LINE_BYTES, OnBadRow, Place
from regard.errors import DataError

BOM = b"\xef\xbb\xbf"
BLOCK = 1 << 16  # bytes read at once


def read_lines(stream: BinaryIO, name: str, bad: OnBadRow) -> Iterator[tuple[int, str]]:
    """Numbered lines with their line ends. Lines that are not UTF-8 or contain NUL go to `bad`."""
    for number, text, fault in read_lines_with_errors(stream, name):
        if fault is None:
            yield number, text
        else:
            bad(fault, text)


def read_lines_with_errors(stream: BinaryIO, name: str) -> Iterator[tuple[int, str, DataError | None]]:
    """Numbered lines, each with its error or None."""
    number = 1
    for lines in _line_groups(stream, name):
        try:
            text = lines.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            for raw in io.BytesIO(lines):
                yield number, *_checked_line(raw, name, number)
                number += 1
            continue
        for line in io.StringIO(text, newline="\n"):
            yield number, line, None
            number += 1


def _line_groups(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Whole lines, as many as are read at once: checking them together is faster."""
    read = getattr(stream, "read1", stream.read)  # which does not wait for more than there is
    waiting: list[bytes] = []  # of a line whose end was not read yet
    size, count, first = 0, 0, True
    while block := read(BLOCK):
        if first:
            block, first = block.removeprefix(BOM), False
        if size + (block.find(b"\n") if b"\n" in block else len(block)) >= MAX_LINE_BYTES:
            message = f"is longer than {MAX_LINE_BYTES >> 20} MB"
            raise DataError(message, file=name, line=count + 1, expected="rows on lines")
        end = block.rfind(b"\n") + 1
        if end:
            lines = b"".join((*waiting, block[:end]))
            count += lines.count(b"\n")
            yield lines
            waiting, size = [], 0
        waiting.append(block[end:])
        size += len(block) - end
    if size:
        yield b"".join(waiting)


def _checked_line(raw: bytes, name: str, number: int) -> tuple[str, DataError | None]:
    """A line, and its error."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return raw.decode("utf-8", "backslashreplace"), _not_utf8(error, raw, name, number)
    return text, _nul(text, name, number) if "\0" in text else None


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
