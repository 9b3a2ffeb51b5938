"""Atomic writes: a file is written completely or not at all. Links stay links; devices and pipes are written directly.

A regular file is written to a hidden file in the same folder (`.NAME.part`), which is renamed at the end. The part file
is locked while its process runs: one that a killed process left is overwritten, one in use raises an error.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from regard.data.sources.locate import find_sources, split_files
from regard.errors import DataError, FolderError, InputError


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """A temporary path to write to; at the end it is flushed and renamed to the target, which is never incomplete.

    If the target is a link, the file it points to is replaced. A device or a pipe receives the bytes at the end.
    """
    if is_stream(target):
        with _copied_to(target) as temporary:
            yield temporary
        return
    real = real_path(target)
    with file_errors(target), locked_part(part_of(real)) as part:
        try:
            os.truncate(part, 0)
            yield part
            put_in_place(part, real)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_text_file(target: Path) -> Iterator[TextIO]:
    """Like `atomic_path`, as an open text file; a device or a pipe receives each line when it is written."""
    if is_stream(target):
        with open_stream(target) as stream:
            yield stream
        return
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield file


def part_of(real: Path) -> Path:
    """The hidden name a file has while it is written."""
    return real.with_name(f".{real.name[:100]}.part")


def put_in_place(part: Path, real: Path) -> None:
    """Flush a finished part and rename it to the file, with the permissions of the file that it replaces."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    if real.exists():
        shutil.copymode(real, part)
    part.replace(real)


@contextmanager
def locked_part(part: Path) -> Iterator[Path]:
    """The part file, created if needed and locked against other processes; the lock ends with the process."""
    handle = _lock(part)
    try:
        yield part
    finally:
        os.close(handle)


def _lock(part: Path) -> int:
    while True:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise FolderError(
                f"another process is writing this file now (it holds {part}). Wait for it, or name another file."
            ) from error
        except OSError:  # a file system without locks
            return handle
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), part.stat()):
                return handle
        os.close(handle)  # another process has just renamed or removed it: open a new one


# Devices and pipes


def is_stream(target: Path) -> bool:
    """Whether the target is a device, a pipe or an open file of this process (/dev/stdout), to be written to."""
    if _descriptor(target) is not None:
        return True
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def open_stream(target: Path) -> Iterator[TextIO]:
    """A device, a pipe or an open file of this process for writing text, line by line."""
    try:
        with open(_opened(target), "w", encoding="utf-8", newline="", buffering=1) as file:
            yield file
    except BrokenPipeError:
        raise  # the reader has closed the pipe, which is not an error
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(f"{target} cannot be written: {error.strerror or error}.") from error


@contextmanager
def open_text(target: Path) -> Iterator[TextIO]:
    """A text file that is written line by line under its own name; also a device or a pipe."""
    if is_stream(target):
        with open_stream(target) as stream:
            yield stream
        return
    with target.open("w", encoding="utf-8") as file:
        yield file


@contextmanager
def _copied_to(target: Path) -> Iterator[Path]:
    """A temporary file whose bytes are written to the stream at the end."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, "output")
        temporary.touch()
        yield temporary
        with file_errors(target), temporary.open("rb") as source, open(_opened(target), "wb") as stream:
            shutil.copyfileobj(source, stream)


def _opened(target: Path) -> int:
    number = _descriptor(target)
    return os.open(target, os.O_WRONLY | os.O_CLOEXEC) if number is None else os.dup(number)


def _descriptor(target: Path) -> int | None:
    """The file descriptor that a name such as /dev/stdout or /dev/fd/63 refers to.

    Opening the name again would truncate or overwrite the file that the shell has redirected it to.
    """
    own = {Path(name).resolve() for name in ("/proc/self/fd", "/dev/fd")}
    path = target.absolute()
    for _ in range(40):  # as many links as the system follows
        if path.name.isdigit() and path.parent.resolve() in own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


# Checks before writing


def real_path(target: Path) -> Path:
    """The path with all links resolved."""
    try:
        return target.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise FolderError(f"{str(target)!r} cannot be the name of a file: {error}.") from error


def check_output_path(
    target: Path, what: str, *, inputs: Iterable[Any] = (), others: Mapping[str, Path | None] | None = None
) -> None:
    """Raise an error if a file cannot be written there, before anything is read or computed.

    inputs: sources that are read, as for `find_sources`; overwriting one of their files is an error, also through a
        link or a relative path.
    others: other files that are written, by the name of their option.
    """
    _check_not_input(target, what, inputs)
    for name, other in (others or {}).items():
        if other is not None and name != what and _same(target, other):
            raise InputError(f"{what} and {name} are the same file, {target}. Name two files.")
    if is_stream(target):
        _check_stream(target, what)
        return
    real = real_path(target)
    if not real.parent.is_dir():
        raise InputError(f"the folder {real.parent} of {what} does not exist. Make it first.")
    if real.is_dir():
        raise InputError(f"{what} {target} is a folder. Name a file.")
    if (real.exists() and not os.access(real, os.W_OK)) or not os.access(real.parent, os.W_OK):
        raise InputError(f"{what} {target} cannot be written there. Name another file or folder.")


def _check_not_input(target: Path, what: str, inputs: Iterable[Any]) -> None:
    try:
        status = target.stat()
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        return
    for source in inputs:
        for name, other in _files(source):
            if os.path.samestat(status, other):
                raise InputError(
                    f"{what} {target} is the input file {name}, which would be overwritten. Name another file."
                )


def _files(source: Any) -> Iterator[tuple[str, os.stat_result]]:
    """The files that would be read, including all splits of a folder, with their `os.stat` results."""
    several = source if isinstance(source, tuple | list) else [source]
    if not all(isinstance(one, str | Path) for one in several):  # rows in memory
        return
    with suppress(OSError, DataError):  # errors of the input are reported when it is read
        if isinstance(source, str | Path) and str(source) != "-" and Path(source).expanduser().is_dir():
            groups = [group for part in split_files(Path(source).expanduser()).values() for group in part]
        else:
            groups = find_sources(source)
        for source in (source for group in groups for source in group):
            with suppress(OSError):
                yield source.name, os.fstat(0) if source.path is None else source.path.stat()


def _same(one: Path, other: Path) -> bool:
    if is_stream(one) or is_stream(other):
        return False
    with suppress(OSError):
        return one.samefile(other)
    return real_path(one) == real_path(other)


def _check_stream(target: Path, what: str) -> None:
    number = _descriptor(target)
    try:
        writable = os.access(target, os.W_OK)
        if number is not None:
            writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        writable = False
    if not writable:
        raise InputError(f"{what} {target} cannot be written to. Name another file.")


@contextmanager
def file_errors(target: Path) -> Iterator[None]:
    """Raise errors of the file system as FolderError with the name of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(f"{target} cannot be written: {error.strerror or error}. Nothing was changed.") from error
