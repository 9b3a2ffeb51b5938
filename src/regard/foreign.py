"""Reading files that somebody else wrote: regular files of a bounded size, and one kind of error for all failures."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from regard.errors import DataError, FolderError, RegardError, shortened

DEFAULT_LIMIT = 1 << 27  # bytes; far above every configuration and tokenizer file in use


@contextmanager
def reading(file: str | Path, kind: type[FolderError] | type[DataError] = FolderError) -> Iterator[None]:
    """Turn whatever the body raises into an error of regard that names the file.

    For code that parses foreign bytes (JSON, Parquet, a tokenizer): the libraries behind it raise dozens of types, and
    `tokenizers` raises a panic that is not even an `Exception`. Errors of regard pass through unchanged.
    """
    try:
        yield
    except (RegardError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise _failure(file, "there is not enough memory to read it", kind) from error
    except RecursionError as error:
        raise _failure(file, "its content is nested too deeply", kind) from error
    except OSError as error:
        raise _failure(file, error.strerror or str(error) or type(error).__name__, kind) from error
    except BaseException as error:
        raise _failure(file, f"{type(error).__name__}: {error}", kind) from error


def _failure(file: str | Path, reason: str, kind: type[FolderError] | type[DataError]) -> FolderError | DataError:
    reason = shortened(reason).rstrip(".")
    if issubclass(kind, DataError):
        return kind(f"cannot be read: {reason}", file=str(file))
    return kind(f"{file} cannot be read: {reason}.")


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """A regular file, opened to be read; a folder, pipe or device, which could block or never end, is refused."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FolderError(f"{path} is not a regular file. Copy its content into a file of that name.")
        yield file


def read_bytes(path: Path, *, limit: int = DEFAULT_LIMIT) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises FileNotFoundError where there is none; FolderError for a folder, pipe or device, which could block or never
    end, and for a larger file, before any of it is read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FolderError(
                f"{path} has {size:,} bytes; expected at most {limit:,}. This is not a file of that kind."
            )
        with reading(path):
            return file.read(limit)


def read_text(path: Path, *, limit: int = DEFAULT_LIMIT) -> str:
    """The same as UTF-8 text, with or without a byte order mark."""
    content = read_bytes(path, limit=limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FolderError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
