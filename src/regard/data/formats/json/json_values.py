"""The values of a JSON list in a large file, one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from regard.data.formats.json.json_start import MAX_PARTS, too_many_parts
from regard.data.formats.lines import BOM
from regard.data.rows import MAX_LINE_BYTES
from regard.errors import DataError

SPACE = re.compile(r"\s*")
MANY_PARTS = f"is not JSON that can be read: one row has more than {MAX_PARTS:,} lists and objects"


class JsonValues:
    """Values of a JSON list one after the other, holding no more of the file than the longest of them."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.stream, self.name = stream, name
        self.text, self.at, self.line, self.undecoded = "", 0, 1, b""
        self.decoder = json.JSONDecoder()
        self.at_end = False
        self.bytes, self.dropped_columns = (
            0,
            0,
        )  # read so far; characters of the current line that were dropped from memory

    def __iter__(self) -> Iterator[tuple[int, Any, str]]:
        self._read_more()
        if self._peek() == "{":
            self._find_data()
        yield from self._list()

    def _list(self) -> Iterator[tuple[int, Any, str]]:
        self._take("[")
        if self._peek() == "]":
            self._take("]")
            return
        while True:
            self._peek()
            line = self.line
            yield line, *self._value()
            if self._peek() != ",":
                break
            self._take(",")
        self._take("]")

    def _find_data(self) -> None:
        """Skip to the list under "data"."""
        self._take("{")
        while True:
            self._peek()
            key, _ = self._value()
            self._peek()
            self._take(":")
            if self._peek() == "[" and key == "data":
                return
            self._value()
            if self._peek() != ",":
                break
            self._take(",")
        raise self._error('there is no list under "data"', expected="SQuAD, or a list of objects")

    def _peek(self) -> str:
        """The next character that is no space, not taken."""
        while True:
            spaces = SPACE.match(self.text, self.at)
            end = spaces.end() if spaces else self.at
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            if end < len(self.text) or self.at_end:
                return self.text[end : end + 1]
            self._read_more()

    def _take(self, expected_char: str) -> None:
        if self._peek() != expected_char:
            actual = self.text[self.at : self.at + 20] or "the end of the file"
            raise self._error(f"found {actual!r}", expected=f'"{expected_char}"')
        self.at += 1

    def _value(self) -> tuple[Any, str]:
        """The next value, and as it is written."""
        while True:
            if too_many_parts(self.text, self.at):
                raise self._error(MANY_PARTS, kind="not-json")
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self.at_end or len(self.text) - self.at > MAX_LINE_BYTES:
                    self.line += self.text.count("\n", self.at, error.pos)
                    start = self.text.rfind("\n", 0, error.pos)
                    column = error.pos - start + (self.dropped_columns if start < 0 else 0)
                    raise self._error(f"is not JSON: {error.msg}", column=str(column), kind="not-json") from error
            except (ValueError, RecursionError) as error:
                raise self._error(f"is not JSON that can be read: {error}", kind="not-json") from error
            else:
                if end < len(self.text) or self.at_end:  # a number may go on in what is not read yet
                    raw = self.text[self.at : end]  # only now: reading more moves the buffer
                    self.line += raw.count("\n")
                    self.at = end
                    return value, raw
            self._read_more()

    def _read_more(self) -> None:
        """Read at least as much as is in the buffer, so that repeated parsing stays linear in total."""
        chunk = self.stream.read(max(1 << 18, len(self.text) - self.at))
        self.at_end = not chunk
        if self.bytes == 0:
            chunk = chunk.removeprefix(BOM)
        self.bytes += len(chunk)
        data = self.undecoded + chunk
        try:
            decoded, self.undecoded = data.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            if self.at_end or len(data) - error.start > 3:
                line = self.line + self.text.count("\n", self.at) + data.count(b"\n", 0, error.start)
                what = f"byte 0x{data[error.start]:02X} is not UTF-8"
                raise DataError(what, file=self.name, line=line, expected="text in UTF-8", kind="not-utf8") from error
            decoded, self.undecoded = data[: error.start].decode("utf-8"), data[error.start :]
        line = self.text.rfind("\n", 0, self.at)
        self.dropped_columns = self.at - line - 1 if line >= 0 else self.dropped_columns + self.at
        self.text, self.at = self.text[self.at :] + decoded, 0

    def _error(self, what: str, **details: Any) -> DataError:
        return DataError(what, file=self.name, line=self.line, **details)
