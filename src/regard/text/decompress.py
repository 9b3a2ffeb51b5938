"""Files packed with gzip or xz, read as a stream that stops where a file unpacks to absurdly much."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from typing import Any, BinaryIO, cast

from regard.errors import DataError

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
DECOMPRESSION_ERRORS = (
    EOFError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
)  # what packed files raise that are not whole
ALWAYS_ALLOWED = 1 << 26  # bytes that any file may unpack to
MAX_RATIO = 250  # above that, how many times its packed size; text packs to a tenth, rarely to a hundredth
XZ_MEMORY = 1 << 28  # bytes that an xz file may ask for; xz -9 needs a quarter of that


def decompressed(raw: io.BufferedReader, file: str) -> BinaryIO:
    """The content of an open file, unpacked if its first bytes say that it is packed.

    Raises a DataError where it unpacks to more than `RATIO` times its size and more than `FREE` bytes.
    """
    start = raw.peek(len(XZ))
    packed = _Counted(raw)
    if start.startswith(GZIP):
        stream: Any = gzip.GzipFile(fileobj=cast("BinaryIO", packed))
    elif start.startswith(XZ):
        stream = _XzFile(packed)
    else:
        return cast("BinaryIO", raw)
    return cast("BinaryIO", io.BufferedReader(_Bounded(stream, packed, file), 1 << 17))


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self.raw, self.count = raw, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.raw.seekable()

    def read(self, size: int = -1) -> bytes:
        found = self.raw.read(size)
        self.count += len(found)
        return found

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self.raw.seek(place, whence)

    def tell(self) -> int:
        return self.raw.tell()


class _XzFile(io.RawIOBase):
    """The streams of an xz file one after another, in bounded memory."""

    def __init__(self, packed: _Counted) -> None:
        self.packed, self.place = packed, 0
        self._start()

    def _start(self) -> None:
        self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            if self.decoder.eof:
                rest = self.decoder.unused_data.lstrip(b"\0") or self._next()
                if not rest:
                    return b""
                self._start()
                found = self.decoder.decompress(rest, size)
            else:
                block = self.packed.read(1 << 16) if self.decoder.needs_input else b""
                if self.decoder.needs_input and not block:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
                found = self.decoder.decompress(block, size)
            if found:
                return found

    def _next(self) -> bytes:
        """The bytes of another stream, after zeros that fill up the one before."""
        while block := self.packed.read(1 << 16):
            if rest := block.lstrip(b"\0"):
                return rest
        return b""


class _Bounded(io.RawIOBase):
    """Unpacked bytes, with a look at how many they are. It can be moved forward, by reading."""

    def __init__(self, stream: Any, packed: _Counted, file: str) -> None:
        self.stream, self.packed, self.file, self.place = stream, packed, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or place < self.place:
            raise io.UnsupportedOperation("only forward")
        while self.place < place and self.readinto(bytearray(min(1 << 16, place - self.place))):
            pass
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: Any) -> int:
        found = self.stream.read(len(buffer))
        buffer[: len(found)] = found
        self.place += len(found)
        if self.place > ALWAYS_ALLOWED and self.place > MAX_RATIO * max(self.packed.count, 1):
            raise DataError(
                f"unpacks to more than {MAX_RATIO} times its size "
                f"({self.place:,} bytes from {self.packed.count:,} so far)",
                file=self.file,
                fix="If this is meant, unpack it first (gunzip, unxz) and give the unpacked file.",
            )
        return len(found)
