"""Text files of any size, plain, .gz or .xz, as a stream of short pieces."""

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
from regard.text.encodings import (
    UTF8,
    as_utf8,
    detect_encoding,
    parse_encoding,
    resolve_byte_order,
    warn_about_encoding,
)

PIECE = 1 << 16  # characters of a piece: long enough to be quick, short enough that one line of a gigabyte is no burden
BLOCK = 1 << 20  # bytes read at once


def read_chunks(
    files: Sequence[str | Path], *, encoding: str | None = None, progress: OnProgress | None = None
) -> Iterator[str]:
    """The text of the files in order, cut at blanks where there are some; joined again it is the very text.

    `encoding` is that of all files; where it is not given, UTF-16, UTF-32 and cp1252 are recognized and reported.
    """
    if isinstance(files, str | Path):
        files = [files]
    paths = [Path(name) for name in files]
    if not paths:
        raise InputError("no file was given. Give at least one text file, plain or packed as .gz or .xz.")
    total = sum(_size(path) for path in paths)
    before = 0
    for path in paths:
        name = file_encoding(path, encoding)
        yield from split_chunks(_decoded(path, name, before, total, progress))
        before += _size(path)
    if progress is not None:
        progress(Progress("bytes", total, total))


def split_chunks(texts: Iterator[str]) -> Iterator[str]:
    """A stream of texts of any length, taken as one run, in pieces of at most `PIECE` characters."""
    rest = ""
    for text in texts:
        text, start = rest + text, 0
        while len(text) - start > PIECE:
            stop = _blank_before(text, start, start + PIECE)
            yield text[start:stop]
            start = stop
        rest = text[start:]
    if rest:
        yield rest


def file_encoding(path: Path, encoding: str | None) -> str:
    """The encoding of a text file: the one that was named, or the one its bytes show, which is then reported."""
    named = None if encoding is None else parse_encoding(encoding)
    if named == UTF8 or not path.is_file():  # what can be read only once, such as a pipe, is not looked at before
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
    """The first lines that are not blank, as many of each file as makes `most` together."""
    found = []
    for name in files:
        taken: list[str] = []
        for piece in read_chunks([name], encoding=encoding):
            taken += [line.strip() for line in piece.split("\n") if line.strip()]
            if len(taken) >= max(1, limit // len(files)):
                break
        found += taken[: max(1, limit // len(files))]
    return found


def _blank_before(text: str, start: int, stop: int) -> int:
    """Where to cut: before the last blank, so that it stays with the word it leads, or anywhere when there is none."""
    found = max(text.rfind(" ", start + 1, stop), text.rfind("\n", start + 1, stop))
    return stop if found < 0 else found


def _decoded(path: Path, encoding: str, before: int, total: int, progress: OnProgress | None) -> Iterator[str]:
    """The text of one file, block by block."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    line = 1
    try:
        with path.open("rb") as raw:
            first = os.fstat(raw.fileno())
            stream = in_utf8(decompressed(raw, str(path)), encoding, path)
            while block := stream.read(BLOCK):
                _check_block(path, block, line)
                text = _text(path, decoder, block, line)
                line += block.count(b"\n")
                if progress is not None:
                    progress(Progress("bytes", min(total, before + raw.tell()), total))
                yield text
            yield _text(path, decoder, b"", line)
            last = os.fstat(raw.fileno())
    except DECOMPRESSION_ERRORS as error:
        raise InputError(f"{path} is packed, but damaged or cut short: {error}. Copy it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if (first.st_size, first.st_mtime_ns) != (last.st_size, last.st_mtime_ns):
        raise InputError(f"{path} changed while it was read. Wait until it is written, or copy it, and start again.")


def in_utf8(stream: BinaryIO, encoding: str, path: Path) -> BinaryIO:
    """The text of a file in UTF-8, whatever encoding it has."""
    return stream if encoding == UTF8 else as_utf8(stream, encoding, str(path))


def _check_block(path: Path, block: bytes, line: int) -> None:
    place = block.find(b"\0")
    if place >= 0:
        line += block.count(b"\n", 0, place)
        raise InputError(
            f"{path} is not text: a NUL byte in line {line}. Give a text file, plain or packed as .gz or .xz; "
            "if it is UTF-16, say so with --encoding utf-16 (encoding= in Python)."
        )


def _text(path: Path, decoder: io.IncrementalNewlineDecoder, block: bytes, line: int) -> str:
    try:
        return decoder.decode(block, final=not block)
    except UnicodeDecodeError as error:
        line += error.object.count(b"\n", 0, error.start)
        raise InputError(
            f"{path} line {line} is not UTF-8. If it has another encoding, name it: --encoding cp1252 (encoding= in "
            "Python). If it is no text at all, leave it out."
        ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
