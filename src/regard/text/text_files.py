"""Read text files of any size, plain, .gz or .xz, as a stream of short chunks."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError, InputError
from regard.progress import OnProgress, Progress
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.text.file_encodings import (
    UTF8,
    as_utf8,
    detect_encoding,
    parse_encoding,
    resolve_byte_order,
    warn_about_encoding,
)

CHUNK = 1 << 16  # characters of a chunk: long enough to be fast, short enough to read lines of a gigabyte
BLOCK = 1 << 20  # bytes read at once


def read_chunks(
    files: Sequence[str | Path], *, encoding: str | None = None, progress: OnProgress | None = None
) -> Iterator[str]:
    """The text of the files in order, in chunks that are split at spaces if possible. Joined, they are the whole text.

    `encoding` is that of all files. Without it UTF-16, UTF-32 and cp1252 are detected, with a warning.
    Raises InputError if a file cannot be read.
    """
    if isinstance(files, str | Path):
        files = [files]
    paths = [Path(name) for name in files]
    if not paths:
        raise InputError("no file was given. Give at least one text file, plain or compressed as .gz or .xz.")
    total = sum(_size(path) for path in paths)
    finished = 0
    for path in paths:
        name = file_encoding(path, encoding)
        yield from split_chunks(_decoded(path, name, finished, total, progress))
        finished += _size(path)
    if progress is not None:
        progress(Progress("bytes", total, total))


def split_chunks(texts: Iterator[str]) -> Iterator[str]:
    """Join a stream of texts of any length and split it into chunks of at most `CHUNK` characters."""
    rest = ""
    for text in texts:
        text = rest + text
        start = 0
        while len(text) - start > CHUNK:
            stop = _split_point(text, start, start + CHUNK)
            yield text[start:stop]
            start = stop
        rest = text[start:]
    if rest:
        yield rest


def file_encoding(path: Path, encoding: str | None) -> str:
    """The encoding of a text file: the given one, or the one detected from its bytes (with a warning if not UTF-8)."""
    named = None if encoding is None else parse_encoding(encoding)
    if named == UTF8 or not path.is_file():  # a pipe can be read only once
        return named or UTF8
    try:
        with path.open("rb") as raw:
            stream = decompressed(raw, str(path))
            if named is not None:
                return resolve_byte_order(named, stream.read(BLOCK), str(path))
            guess = detect_encoding(iter(lambda: stream.read(BLOCK), b""))
    except (*DECOMPRESSION_ERRORS, OSError, DataError):  # reported when the text is read
        return UTF8 if named is None else named
    if guess.name != UTF8:
        warn_about_encoding(str(path), guess)
    return guess.name


def first_lines(files: Sequence[str | Path], limit: int, *, encoding: str | None = None) -> list[str]:
    """The first lines that are not blank: `limit` in total, the same number from each file."""
    lines: list[str] = []
    per_file = max(1, limit // len(files))
    for name in files:
        file_lines: list[str] = []
        for chunk in read_chunks([name], encoding=encoding):
            file_lines += [line.strip() for line in chunk.split("\n") if line.strip()]
            if len(file_lines) >= per_file:
                break
        lines += file_lines[:per_file]
    return lines


def _split_point(text: str, start: int, stop: int) -> int:
    """Where to split: before the last space, so that it stays with the word after it; at `stop` if there is none."""
    space = max(text.rfind(" ", start + 1, stop), text.rfind("\n", start + 1, stop))
    return stop if space < 0 else space


def _decoded(path: Path, encoding: str, finished: int, total: int, progress: OnProgress | None) -> Iterator[str]:
    """The text of one file, block by block."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    line = 1
    try:
        with path.open("rb") as raw:
            stat_before = os.fstat(raw.fileno())
            stream = in_utf8(decompressed(raw, str(path)), encoding, path)
            while block := stream.read(BLOCK):
                _check_block(path, block, line)
                text = _text(path, decoder, block, line)
                line += block.count(b"\n")
                if progress is not None:
                    progress(Progress("bytes", min(total, finished + raw.tell()), total))
                yield text
            yield _text(path, decoder, b"", line)
            stat_after = os.fstat(raw.fileno())
    except DECOMPRESSION_ERRORS as error:
        raise InputError(f"{path} is compressed, but damaged or incomplete: {error}. Copy it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if (stat_before.st_size, stat_before.st_mtime_ns) != (stat_after.st_size, stat_after.st_mtime_ns):
        raise InputError(f"{path} changed while it was read. Wait until it is complete, or copy it, and start again.")


def in_utf8(stream: BinaryIO, encoding: str, path: Path) -> BinaryIO:
    """A stream of the same text in UTF-8."""
    return stream if encoding == UTF8 else as_utf8(stream, encoding, str(path))


def _check_block(path: Path, block: bytes, line: int) -> None:
    position = block.find(b"\0")
    if position >= 0:
        line += block.count(b"\n", 0, position)
        raise InputError(
            f"{path} is not text: a NUL byte in line {line}. Give a text file, plain or compressed as .gz or .xz; "
            "if it is UTF-16, use --encoding utf-16 (encoding= in Python)."
        )


def _text(path: Path, decoder: io.IncrementalNewlineDecoder, block: bytes, line: int) -> str:
    try:
        return decoder.decode(block, final=not block)
    except UnicodeDecodeError as error:
        line += error.object.count(b"\n", 0, error.start)
        raise InputError(
            f"{path} line {line} is not UTF-8. If it has another encoding, use --encoding cp1252 (encoding= in "
            "Python). If it is not text, remove it."
        ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
