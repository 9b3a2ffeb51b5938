"""Reading files that somebody else wrote: regular files of a bounded size, and one kind of error for all failures."""

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

DEFAULT_LIMIT = 1 << 27  # bytes; far above every configuration and tokenizer file in use
DEEPEST = 100  # levels of nesting in JSON


@contextmanager
def file_errors(
    file: str | Path, kind: type[FolderError] | type[DataError] = FolderError, *, fix: str | None = None
) -> Iterator[None]:
    """Turn whatever the body raises into an error of regard that names the file.

    For code that parses foreign bytes (JSON, Parquet, a tokenizer): the libraries behind it raise dozens of types, and
    `tokenizers` raises a panic that is not even an `Exception`. Errors of regard pass through unchanged.
    `fix` is added to the message: what to do about it.
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
    return kind(f"{file} cannot be read: {reason}.{'' if fix is None else ' ' + fix}")


@contextmanager
def open_regular_file(path: Path) -> Iterator[BufferedReader]:
    """A regular file, opened to be read; a folder, pipe or device, which could block or never end, is refused.

    Raises FileNotFoundError where there is none, FolderError where it cannot be opened.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a folder, no permission, a name that no file can have
        raise FolderError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    with file:
        _check_regular(path, os.fstat(file.fileno()).st_mode)
        yield file


def read_bytes(path: Path, *, limit: int = DEFAULT_LIMIT) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises FileNotFoundError where there is none; FolderError for a folder, pipe or device, which could block or never
    end, and for a larger file, before any of it is read.
    """
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FolderError(
                f"{path} has {size:,} bytes; expected at most {limit:,}. This is not a file of that kind."
            )
        with file_errors(path):
            return file.read(min(limit, size + 4096))  # room for that many is made at once


def read_text(path: Path, *, limit: int = DEFAULT_LIMIT) -> str:
    """The same as UTF-8 text, with or without a byte order mark."""
    content = read_bytes(path, limit=limit)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FolderError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def read_json_value(path: Path, *, limit: int = DEFAULT_LIMIT) -> Any:
    """The value in a JSON file. Raises FileNotFoundError where there is none, FolderError with line and column."""
    text = read_text(path, limit=limit)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise FolderError(f"{path} line {error.lineno} column {error.colno}: not JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise FolderError(f"{path} is JSON that cannot be read: {shorten(str(error))}.") from error
    _check_depth(path, value)
    if "\\ud" in text.lower():
        _check_surrogates(path, value)
    return value


def _check_depth(path: Path, value: Any) -> None:
    """Refuse what is nested so deeply that printing or copying it would fail later."""
    level = [value]
    for _ in range(DEEPEST):
        groups = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [item for group in groups for item in group if isinstance(item, dict | list)]
        if not level:
            return
    raise FolderError(f"{path} is JSON nested more than {DEEPEST} levels deep. This is not a file of that kind.")


def _check_surrogates(path: Path, value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise FolderError(f"{path} holds half of a surrogate pair, which no text can hold. Remove it.") from error


def check_regular_file(path: Path) -> None:
    """Refuse a folder, pipe or device before a library opens it, which could block. Raises FileNotFoundError."""
    _check_regular(path, path.stat().st_mode)


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise FolderError(f"{path} is not a regular file. Copy its content into a file of that name.")


def link_root(folder: Path) -> Path:
    """Where links of the folder may lead: inside it, or inside the hub's own cache entry it is (in) a snapshot of."""
    real = folder.resolve()
    for place in (real, *real.parents):
        if place.parent.name == "snapshots" and place.parent.parent.name.startswith("models--"):
            return place.parent.parent
    return real


def path_inside(folder: Path, name: str) -> Path:
    """The file of that name, refused before it is read where it would lie outside the folder."""
    path = Path(name)
    shown = shorten(name, 100)
    if path.is_absolute() or ".." in path.parts or not name or "\0" in name:
        raise FolderError(f'{folder}: the file name "{shown}" leads out of the folder. Names must stay inside it.')
    try:
        real = (folder / path).resolve()
        real.exists()  # also finds names that no file can have
        stays = real.is_relative_to(link_root(folder))
    except (OSError, ValueError, RuntimeError) as error:  # too long, not text, a link to itself
        reason = shorten(str(error), 100)
        raise FolderError(f"{folder}: the file name {shown!r} cannot be used: {reason}.") from error
    if not stays:
        raise FolderError(f'{folder}: "{shown}" is a link out of the folder. Copy the file into the folder instead.')
    return folder / path


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
