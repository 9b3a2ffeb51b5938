"""A byte stream that is computed while it is read."""

from __future__ import annotations

import io
from typing import Any

BLOCK = 1 << 16  # bytes read at once when seeking


class ForwardStream(io.RawIOBase):
    """Base class of streams that are read once, from start to end; subclasses implement `_read`.

    `seek` moves forward only, by reading and discarding bytes.
    """

    def __init__(self) -> None:
        self.position = 0

    def _read(self, size: int) -> bytes:
        """The next bytes, at most `size`; no bytes at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or position < self.position:
            raise io.UnsupportedOperation("this stream can only be moved forward")
        while self.position < position and self.readinto(bytearray(min(BLOCK, position - self.position))):
            pass
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: Any) -> int:
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)
