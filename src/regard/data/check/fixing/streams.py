"""Bytes without what no text holds, so that a row is not lost for one of them."""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

HALF = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    rb"(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


class Cleaned:
    """A stream of lines from which NUL bytes, and in JSON the escapes of NUL and of half a pair, are taken out."""

    def __init__(self, stream: BinaryIO, format: str, changes: Counter[str]) -> None:
        self.stream, self.changes = stream, changes
        self.json = format in ("jsonl", "json")

    def readline(self, size: int = -1) -> bytes:
        return self._clean(self.stream.readline(size))

    def read(self, size: int = -1) -> bytes:
        """To the end of a line, so that no escape is cut in two."""
        return self._clean(self.stream.read(size) + self.stream.readline())

    def _clean(self, raw: bytes) -> bytes:
        nuls = raw.count(b"\0")
        if nuls:
            self.changes["NUL characters taken out"] += nuls
            raw = raw.replace(b"\0", b"")
        if self.json and b"\\u" in raw:
            raw, halves = HALF.subn(rb"\1", raw)
            if halves:
                self.changes["NUL or half characters taken out"] += halves
        return raw
