"""Sources of bytes: a file, stdin or a pipe, decompressed and converted to UTF-8.

Compression and encoding are detected from the first bytes. A file that is truncated, or that changes while it is read,
is an error. A sheet of a spreadsheet is read as CSV.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from regard.data.formats.excel import EXCEL_SUFFIXES, sheet_as_csv
from regard.data.formats.format import FIRST_READ
from regard.data.formats.json.json_start import has_first_item
from regard.data.rows import MAX_LINE_BYTES
from regard.errors import DataError
from regard.foreign import file_errors
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.text.file_encodings import (
    UTF8,
    EncodingGuess,
    as_utf8,
    detect_encoding,
    resolve_byte_order,
    warn_about_encoding,
)

PACKED = (".gz", ".xz")


class Source:
    """One stream of bytes with a name. A file can be read again and again, stdin or a pipe once.

    `encoding` is the one the user names; where it is None it is recognized, and reported. `sheet` is that of a
    spreadsheet; the first one with rows if it is None.
    """

    def __init__(self, name: str | Path, *, sheet: str | None = None, suffix: str | None = None) -> None:
        self.encoding: str | None = None
        self.sheet, self._suffix = sheet, suffix
        self._guess: EncodingGuess | None = None
        self.name = "stdin" if str(name) == "-" else str(name)
        self.path = None if str(name) == "-" else Path(name)
        self.single_pass = self.path is None or not stat.S_ISREG(self.path.stat().st_mode)
        self._replay: _Replay | None = None
        self._started = False
        self._temporary_file: object = None

    @property
    def suffix(self) -> str:
        """What the name ends in, compression left out."""
        if self._suffix is not None:
            return self._suffix
        return suffix_of(self.path) if self.path is not None else ""

    def head(self, size: int = FIRST_READ) -> bytes:
        """The first bytes, decompressed: at least `size` and two whole lines, if the file has as many."""
        with self._text() as stream:
            content = stream.read(size)
            while content.count(b"\n") < 2 and len(content) < MAX_LINE_BYTES and not has_first_item(content):
                more = stream.read(len(content))
                if not more:
                    break
                content += more
        if self._replay is not None:
            self._replay.recorded.seek(0)
        if not content:
            raise DataError("is empty", file=self.name, expected="at least one row")
        return content

    def copy_to_disk(self) -> None:
        """Copy a stream into a temporary file, for formats that are read from their end."""
        if self.single_pass:
            recorded = tempfile.NamedTemporaryFile()  # noqa: SIM115 (lives as long as this source)
            self._start()
            with self._unpacked() as stream:
                shutil.copyfileobj(stream, recorded)
            recorded.flush()
            self._temporary_file, self.path, self.single_pass = recorded, Path(recorded.name), False

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The unpacked bytes, and at their end a look whether the file is still the one that was opened."""
        if self.single_pass and self._started:
            raise DataError("can be read only once", file=self.name, fix="Save it to a file to read it again.")
        self.detected_encoding()  # before what is read once is no longer kept
        self._start()
        with self._text() as stream:
            yield stream

    def detected_encoding(self) -> EncodingGuess:
        """The encoding as given by the user or as detected; a detected one other than UTF-8 is reported once."""
        if self._guess is None:
            with file_errors(self.name, DataError):
                self._guess = self._detect()
            if self._replay is not None:
                self._replay.recorded.seek(0)
            if self._guess.reason:
                warn_about_encoding(self.name, self._guess)
        return self._guess

    def _detect(self) -> EncodingGuess:
        if self.encoding == UTF8:
            return EncodingGuess(UTF8, "")
        with self._unpacked() as stream:
            if self.encoding is not None:
                return EncodingGuess(resolve_byte_order(self.encoding, stream.read(FIRST_READ), self.name), "")
            first = stream.read(FIRST_READ)
            more = iter(()) if self.single_pass else iter(lambda: stream.read(FIRST_READ), b"")
            return detect_encoding(itertools.chain([first], more))

    @contextlib.contextmanager
    def _text(self) -> Iterator[BinaryIO]:
        """The bytes in UTF-8; of a spreadsheet, its sheet as CSV."""
        guess = self.detected_encoding()
        with self._unpacked() as stream, contextlib.ExitStack() as stack:
            if guess.name != UTF8:
                yield as_utf8(stream, guess.name, self.name)
            elif self.suffix in EXCEL_SUFFIXES and self.path is not None:
                yield stack.enter_context(sheet_as_csv(stream, self.name, self.sheet))
            else:
                yield stream

    def _start(self) -> None:
        self._started = True
        if self._replay is not None:
            self._replay.recording = False

    @contextlib.contextmanager
    def _unpacked(self) -> Iterator[BinaryIO]:
        with contextlib.ExitStack() as stack:
            raw, before = self._raw(stack)
            try:
                yield decompressed(raw, self.name)
            except DECOMPRESSION_ERRORS as error:
                self._check_unchanged(before)
                what = f"is cut short or damaged: {str(error).rstrip('.')}"
                raise DataError(what, file=self.name, fix="Fetch or pack it again.") from error
            except DataError:
                self._check_unchanged(before)
                raise
            self._check_unchanged(before)

    def _raw(self, stack: contextlib.ExitStack) -> tuple[io.BufferedReader, os.stat_result | None]:
        if not self.single_pass and self.path is not None:
            try:
                file = stack.enter_context(self.path.open("rb"))
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", file=self.name) from error
            return file, os.fstat(file.fileno())
        if self._replay is None:
            if self.path is None and sys.stdin is None:
                raise DataError("is closed, so nothing can be read", file="standard input", fix="Name a file.")
            self._replay = _Replay(sys.stdin.buffer if self.path is None else self.path.open("rb"))
        return io.BufferedReader(self._replay, FIRST_READ), None

    def _check_unchanged(self, before: os.stat_result | None) -> None:
        if before is None or self.path is None:
            return
        after = self.path.stat() if self.path.exists() else None
        if after is None or (after.st_ino, after.st_size, after.st_mtime_ns) != (
            before.st_ino,
            before.st_size,
            before.st_mtime_ns,
        ):
            now = "it is gone" if after is None else f"{before.st_size} bytes before, {after.st_size} now"
            fix = "Wait until no program writes to it, then read it again."
            raise DataError(f"changed while it was read ({now})", file=self.name, fix=fix)


class _Replay(io.RawIOBase):
    """A stream that cannot go back, whose beginning is kept until it has been looked at."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.recorded, self.recording = raw, io.BytesIO(), True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.recorded.readinto(buffer)
        if count:
            return count
        read = getattr(self.raw, "read1", self.raw.read)
        chunk = read(len(buffer))
        if self.recording:
            self.recorded.write(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        """Stay open: the second reader continues where the first stopped."""


def suffix_of(path: Path) -> str:
    name = Path(path.stem) if path.suffix.lower() in PACKED else path
    return name.suffix.lower()
