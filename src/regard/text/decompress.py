"""Read gzip and xz files as a stream, with a limit on the decompressed size."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from typing import Any, BinaryIO, cast

from regard.errors import DataError
from regard.text.forward_stream import ForwardStream

GZIP = b"\x1f\x8b"
XZ = b"\xfd7zXZ\x00"
DECOMPRESSION_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)  # raised for damaged files
ALWAYS_ALLOWED = 1 << 26  # decompressed bytes that are allowed for any file
MAX_RATIO = 250  # decompressed bytes per compressed byte; text has a ratio of 10, rarely of 100
XZ_MEMORY = 1 << 28  # memory limit of the xz decoder in bytes; files of xz -9 need a quarter of it
BLOCK = 1 << 16  # compressed bytes read at once


def decompressed(raw: io.BufferedReader, file: str) -> BinaryIO:
    """The content of an open file, decompressed if its first bytes are those of gzip or xz.

    Reading raises DataError if it decompresses to more than ALWAYS_ALLOWED bytes and MAX_RATIO times its size.
    """
    start = raw.peek(len(XZ))
    compressed = _CountingReader(raw)
    if start.startswith(GZIP):
        stream: Any = gzip.GzipFile(fileobj=cast("BinaryIO", compressed))
    elif start.startswith(XZ):
        stream = _XzReader(compressed)
    else:
        return cast("BinaryIO", raw)
    return cast("BinaryIO", io.BufferedReader(_LimitedStream(stream, compressed, file), 1 << 17))


class _CountingReader(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self.raw = raw
        self.count = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.raw.seekable()

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.count += len(data)
        return data

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        return self.raw.seek(position, whence)

    def tell(self) -> int:
        return self.raw.tell()


class _XzReader(io.RawIOBase):
    """All concatenated streams of an xz file, decompressed with limited memory."""

    def __init__(self, compressed: _CountingReader) -> None:
        self.compressed = compressed
        self._start_stream()

    def _start_stream(self) -> None:
        self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            if self.decoder.eof:
                block = self.decoder.unused_data.lstrip(b"\0") or self._next_stream()
                if not block:
                    return b""
                self._start_stream()
            else:
                block = self._next_block()
            data = self.decoder.decompress(block, size)
            if data:
                return data

    def _next_block(self) -> bytes:
        if not self.decoder.needs_input:
            return b""
        block = self.compressed.read(BLOCK)
        if not block:
            raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        return block

    def _next_stream(self) -> bytes:
        """The first bytes of the next stream, after the zeros that pad the previous one."""
        while block := self.compressed.read(BLOCK):
            if start := block.lstrip(b"\0"):
                return start
        return b""


class _LimitedStream(ForwardStream):
    """Decompressed bytes; reading fails once they are too many for the compressed size."""

    def __init__(self, stream: Any, compressed: _CountingReader, file: str) -> None:
        super().__init__()
        self.stream = stream
        self.compressed = compressed
        self.file = file

    def _read(self, size: int) -> bytes:
        data: bytes = self.stream.read(size)
        total = self.position + len(data)
        if total > ALWAYS_ALLOWED and total > MAX_RATIO * max(self.compressed.count, 1):
            raise DataError(
                f"decompresses to more than {MAX_RATIO} times its size "
                f"({total:,} bytes from {self.compressed.count:,} so far)",
                file=self.file,
                fix="If this is intended, decompress it first (gunzip, unxz) and give the decompressed file.",
            )
        return data
