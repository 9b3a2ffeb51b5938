"""Read files from untrusted sources: regular files of limited size only, with one kind of error for all failures."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from regard.errors import DataError, FolderError, RegardError, shorten

DEFAULT_LIMIT = 1 << 27  # bytes; far larger than configuration and tokenizer files are
MAX_DEPTH = 100  # levels of nesting in JSON


@contextmanager
def file_errors(
    file: str | Path, kind: type[FolderError] | type[DataError] = FolderError, *, fix: str | None = None
) -> Iterator[None]:
    """Convert every exception raised in the body into a `kind` error that names the file.

    For code that parses untrusted bytes (JSON, Parquet, a tokenizer): parsers raise dozens of exception types, and
    `tokenizers` raises a panic that is not an `Exception`. A RegardError is passed through unchanged.
    `fix` is added to the message.

        with file_errors("rows.parquet", DataError, fix="Write the file again."):
            table = pyarrow.parquet.read_table("rows.parquet")
    """
    try:
        yield
    except (RegardError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise _failure(file, "there is not enough memory to read it", kind, fix) from error
    except RecursionError as error:
        raise _failure(file, "its content is nested too deeply", kind, fix) from error
    except OSError as error:
        raise _failure(file, error.strerror or str(error) or type(error).__name__, kind, fix) from error
    except BaseException as error:
        raise _failure(file, f"{type(error).__name__}: {error}", kind, fix) from error


def _failure(
    file: str | Path, reason: str, kind: type[FolderError] | type[DataError], fix: str | None
) -> FolderError | DataError:
    reason = shorten(reason).rstrip(".")
    if issubclass(kind, DataError):
        return kind(f"cannot be read: {reason}", file=str(file), fix=fix)
    after = "" if fix is None else f" {fix}"
    return kind(f"{file} cannot be read: {reason}.{after}")


@contextmanager
def open_regular_file(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading. Folders, pipes and devices are refused, because reading them may never end.

    Raises FileNotFoundError if it does not exist, FolderError if it cannot be opened.
    """
    try:
        file = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a folder, no permission, an invalid file name
        raise FolderError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    with file:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
        yield file


def read_bytes(path: Path, *, limit: int = DEFAULT_LIMIT) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises FileNotFoundError if it does not exist, FolderError if it is a folder, a pipe or a device, or if it is
    larger than the limit (checked before reading).
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FolderError(f"{path} has {size:,} bytes; expected at most {limit:,}. Is it the right file?")
        with file_errors(path):
            return file.read(min(limit, size + 4096))  # this much memory is allocated at once


def read_text(path: Path, *, limit: int = DEFAULT_LIMIT) -> str:
    """The content of a UTF-8 file as text, without its byte order mark. Raises the errors of `read_bytes`."""
    content = read_bytes(path, limit=limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FolderError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def read_json_value(path: Path, *, limit: int = DEFAULT_LIMIT) -> Any:
    """The value in a JSON file. Raises FileNotFoundError if it does not exist, FolderError with line and column."""
    text = read_text(path, limit=limit)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise FolderError(f"{path} line {error.lineno} column {error.colno}: not JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, a thousand brackets
        raise FolderError(f"{path} is JSON that cannot be read: {shorten(str(error))}.") from error
    _check_depth(path, value)
    if "\\ud" in text.lower():
        _check_surrogates(path, value)
    return value


def _check_depth(path: Path, value: Any) -> None:
    """Refuse JSON that is nested so deeply that printing or copying it would fail later."""
    level = [value]
    for _ in range(MAX_DEPTH):
        groups = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [item for group in groups for item in group if isinstance(item, dict | list)]
        if not level:
            return
    raise FolderError(f"{path} is JSON nested more than {MAX_DEPTH} levels deep. Is it the right file?")


def _check_surrogates(path: Path, value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise FolderError(f"{path} contains half of a surrogate pair, which is not valid text. Remove it.") from error


def check_regular_file(path: Path) -> None:
    """Refuse a folder, pipe or device before a library opens it and blocks. Raises FileNotFoundError."""
    _check_regular(path, path.stat().st_mode)


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise FolderError(f"{path} is not a regular file. Copy its content into a regular file of that name.")


def link_root(folder: Path) -> Path:
    """The folder that links may point into: the folder itself, or its entry in the cache of the Hugging Face hub."""
    real = folder.resolve()
    for parent in (real, *real.parents):
        if parent.parent.name == "snapshots" and parent.parent.parent.name.startswith("models--"):
            return parent.parent.parent
    return real


def path_inside(folder: Path, name: str) -> Path:
    """The path of a file inside the folder. Raises FolderError if the name or a link leads out of the folder."""
    path = Path(name)
    shown = shorten(name, 100)
    if path.is_absolute() or ".." in path.parts or not name or "\0" in name:
        raise FolderError(f'{folder}: the file name "{shown}" leads out of the folder. Use a name inside it.')
    try:
        real = (folder / path).resolve()
        real.exists()  # raises for invalid file names
        is_inside = real.is_relative_to(link_root(folder))
    except (OSError, ValueError, RuntimeError) as error:  # too long, invalid characters, a link to itself
        reason = shorten(str(error), 100)
        raise FolderError(f"{folder}: the file name {shown!r} cannot be used: {reason}.") from error
    if not is_inside:
        raise FolderError(f'{folder}: "{shown}" is a link out of the folder. Copy the file into the folder instead.')
    return folder / path


def _open_nonblocking(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
