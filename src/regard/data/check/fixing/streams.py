"""Remove NUL bytes and halves of surrogate pairs from a stream, so that their rows can be read."""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

NUL_OR_HALF_PAIR = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    rb"(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


class CleanedStream:
    """A stream of lines without NUL bytes, and in JSON without escapes of NUL and of half a surrogate pair."""

    def __init__(self, stream: BinaryIO, format: str, changes: Counter[str]) -> None:
        self.stream = stream
        self.changes = changes
        self.is_json = format in ("jsonl", "json")

    def readline(self, size: int = -1) -> bytes:
        return self._clean(self.stream.readline(size))

    def read(self, size: int = -1) -> bytes:
        """At least `size` bytes, up to the end of a line, so that no escape is split."""
        return self._clean(self.stream.read(size) + self.stream.readline())

    def _clean(self, raw: bytes) -> bytes:
        nuls = raw.count(b"\0")
        if nuls:
            self.changes["NUL characters removed"] += nuls
            raw = raw.replace(b"\0", b"")
        if self.is_json and b"\\u" in raw:
            raw, halves = NUL_OR_HALF_PAIR.subn(rb"\1", raw)
            if halves:
                self.changes["NUL characters or halves of surrogate pairs removed"] += halves
        return raw
