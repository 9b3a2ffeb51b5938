"""Word vector files: word2vec's text and binary formats, and GloVe's, which is the text format without a header.

The header is `count width`. Then, for each word: in the text format a line `word number number …`; in the binary one
the word, a blank, the numbers as 4-byte little-endian floats, and a line break, which some programs omit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from regard.data.atomic import atomic_path, check_output_path
from regard.errors import DataError, FolderError, InputError, pluralize, shorten
from regard.foreign import file_errors, open_regular_file
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.word_vectors.vectors import WordVectors

WIDEST = 1 << 20  # maximum width of a vector
LONGEST = 1 << 16  # maximum bytes of a word
SUFFIXES = {".bin": True, ".txt": False, ".vec": False}


def check_target(path: str | Path) -> bool:
    """Whether a file of that name is binary; an error for other suffixes and for a path that cannot be written."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} must end in .bin (word2vec's binary format), .txt or .vec (its text format).")
    check_output_path(path, "the file of vectors")
    return SUFFIXES[path.suffix]


def save_vectors(vectors: WordVectors, path: str | Path) -> None:
    """Write the format of the suffix: .bin, .txt or .vec. The file appears only when it is complete."""
    path = Path(path)
    binary = check_target(path)
    for word in vectors.words:
        if not word or " " in word or "\n" in word:
            raise InputError(f"the word {word!r} cannot be written: in these formats a blank ends a word.")
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(vectors)} {vectors.table.shape[1]}\n".encode())
        for word, row in zip(vectors.words, vectors.table.astype("<f4", copy=False), strict=True):
            numbers = row.tobytes() if binary else " ".join(row.astype(str).tolist()).encode()
            file.write(word.encode() + b" " + numbers + b"\n")


def load_vectors(path: str | Path) -> WordVectors:
    """Read any of the formats, recognized by content, plain or compressed (.gz, .xz)."""
    with file_errors(path, DataError):
        return _loaded(Path(path))


def _loaded(path: Path) -> WordVectors:
    try:
        with open_regular_file(path) as raw, decompressed(raw, str(path)) as file:
            header = file.readline(LONGEST)
            sizes = _sizes(header)
            first = b"" if sizes is None else file.readline(16 * WIDEST)
            if sizes is None:
                header += b"" if header.endswith(b"\n") else file.readline(16 * WIDEST)
                rows = _text_rows(path, file, header, len(header.rstrip(b"\r\n ").split(b" ")) - 1, 1)
            elif 0 < sizes[1] <= WIDEST and _is_text(first, sizes[1]):
                rows = _text_rows(path, file, first, sizes[1], 2)
            else:
                file.seek(len(header))
                rows = _binary_rows(path, file, *sizes)
            return _gathered(path, rows, sizes)
    except FolderError as error:  # not a regular file
        raise InputError(str(error)) from error
    except DECOMPRESSION_ERRORS as error:
        raise InputError(f"{path} is compressed, but damaged or truncated: {error}. Copy it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def _sizes(header: bytes) -> tuple[int, int] | None:
    """Count and width, where the first line is two whole numbers."""
    parts = header.split()
    if len(parts) != 2 or not all(part.isdigit() and len(part) < 16 for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _is_text(line: bytes, width: int) -> bool:
    """Whether a line is a word and that many numbers in text; binary data hardly ever is."""
    parts = line.rstrip(b"\r\n").rstrip(b" ").rsplit(b" ", width)
    with contextlib.suppress(ValueError):
        return len(parts) == width + 1 and bool(len([float(part) for part in parts[1:]]) == width)
    return False


def _text_rows(
    path: Path, file: IO[bytes], line: bytes, width: int, number: int
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    if not 1 <= width <= WIDEST:
        raise _fault(path, number, "is no word with numbers", "a header of count and width, or a word and its vector")
    while line:
        parts = line.rstrip(b"\r\n").rstrip(b" ").rsplit(b" ", width)
        if len(parts) != width + 1:
            message = f"holds {pluralize(max(0, len(line.split()) - 1), 'number')}"
            raise _fault(path, number, message, f"a word and {width}, as in the lines before")
        try:
            yield parts[0].decode(), np.array([float(part) for part in parts[1:]], np.float32)
        except UnicodeDecodeError as error:
            raise _fault(path, number, "is not UTF-8", "a word and its numbers") from error
        except ValueError as error:
            raise _fault(path, number, shorten(str(error), 100), "numbers") from error
        line, number = file.readline(16 * WIDEST), number + 1


def _binary_rows(path: Path, file: IO[bytes], count: int, width: int) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    if not 1 <= width <= WIDEST:
        raise _fault(path, 1, f"says that vectors have {width} numbers", f"1 to {WIDEST:,}")
    for row in range(count):
        offset = file.tell()
        word = bytearray()
        while (letter := file.read(1)) not in (b" ", b"") and len(word) < LONGEST:
            if letter != b"\n" or word:  # the line break of the previous row
                word += letter
        numbers = file.read(4 * width)
        if len(numbers) < 4 * width:
            raise DataError(
                f"ends in word {row + 1} of {count}, which begins at byte {offset}",
                file=str(path),
                expected=f"a word, a blank and {4 * width} bytes",
                fix="The file is truncated or has another format. Copy it again.",
            )
        try:
            yield word.decode(), np.frombuffer(numbers, "<f4").astype(np.float32)
        except UnicodeDecodeError as error:
            raise DataError(
                f"has a word at byte {offset} that is not UTF-8", file=str(path), expected="UTF-8"
            ) from error


def _gathered(
    path: Path, rows: Iterator[tuple[str, npt.NDArray[np.float32]]], sizes: tuple[int, int] | None
) -> WordVectors:
    words: dict[str, None] = {}
    table = []
    for word, row in rows:
        if word in words:
            raise DataError(
                f'has "{shorten(word, 60)}" twice', file=str(path), row=len(words) + 1, expected="one vector per word"
            )
        words[word] = None
        table.append(row)
    if sizes is not None and (len(table), len(table[0]) if table else sizes[1]) != sizes:
        message = f"holds {pluralize(len(table), 'vector')} of {pluralize(len(table[0]) if table else 0, 'number')}"
        raise DataError(message, file=str(path), expected=f"{sizes[0]} of {sizes[1]}, as its first line says")
    if not table:
        raise DataError("has no vector", file=str(path), expected="a word and its numbers")
    return WordVectors(tuple(words), np.stack(table))


def _fault(path: Path, line: int, what: str, expected: str) -> DataError:
    return DataError(what, file=str(path), line=line, expected=expected)
