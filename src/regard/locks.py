"""One process at a time in a folder: a lock file beside it, which the system frees when its owner dies."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from regard.errors import FolderError

try:
    import fcntl
except ImportError:  # not on Windows, where nothing stops a second process
    fcntl = None  # type: ignore[assignment]  # asked for before use

PATIENCE = 1.0  # seconds; a process that was just killed frees its locks a moment later
UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)  # by some network file systems


@contextlib.contextmanager
def folder_lock(folder: Path, *, activity: str, fix: str) -> Iterator[None]:
    """Nobody else is in this block for the same folder. A FolderError names the process that is: "is being built by".

    The lock lies beside the folder, which may be replaced meanwhile, and is removed at the end. That of a process that
    has died is taken over.
    """
    path = _lock_file(folder)
    while True:
        with _opened(path) as file:
            _take(file, folder, activity, fix)
            if not _is_same(path, file):  # its last owner has removed it while we took it: once more
                continue
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}")
            file.flush()
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()
            return


def _lock_file(folder: Path) -> Path:
    try:
        real = folder.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise FolderError(f"{str(folder)!r} cannot be a folder's name: {error}.") from error
    name = real.name
    if len(os.fsencode(name)) > 200:  # file names end at 255 bytes
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return real.parent / f".{name}.lock"


def _opened(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FolderError(
            f"{path} cannot be written: {reason}. Name an output folder in a folder that you can write to."
        ) from error


def _take(file: TextIO, folder: Path, activity: str, fix: str) -> None:
    """Lock the file, or say who has."""
    if fcntl is None:
        return
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            raise FolderError(f"{folder} is being {activity} by {_owner(file) or 'another process'}. {fix}") from None
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise FolderError(f"{file.name} cannot be locked: {error.strerror}. Use a local disk.") from error
            _check_owner(file, folder, activity, fix)
            return


def _check_owner(file: TextIO, folder: Path, activity: str, fix: str) -> None:
    """Where the file system has no locks: whether the process that wrote the file still runs on this machine."""
    owner = _owner(file)
    known = re.fullmatch(r"process (\d{1,9}) on (.*)", owner)
    if known is None or known[2] != platform.node() or int(known[1]) == os.getpid():
        return
    try:
        os.kill(int(known[1]), 0)
    except ProcessLookupError:
        return
    except OSError:  # it runs, as another user
        pass
    raise FolderError(f"{folder} is being {activity} by {owner}. {fix}")


def _owner(file: TextIO) -> str:
    """Who holds the lock."""
    file.seek(0)
    return file.read(200)


def _is_same(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
