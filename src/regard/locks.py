"""A lock that lets one process at a time write a folder. The system releases it when the process ends."""

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
except ImportError:  # Windows: folders are not locked
    fcntl = None  # type: ignore[assignment]  # checked before use

TIMEOUT = 1.0  # seconds to wait for the lock; a killed process releases its locks a moment later
UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)  # raised by some network file systems


@contextlib.contextmanager
def folder_lock(folder: Path, *, activity: str, fix: str) -> Iterator[None]:
    """Hold the lock of a folder inside the `with` block.

    Raises FolderError with the owner if another process holds it: "FOLDER is being ACTIVITY by process 42 on HOST. FIX"
    The lock file is next to the folder (the folder itself may be replaced), and is removed at the end. The lock of a
    process that has ended is taken over.

        with folder_lock(Path("runs/reviews"), activity="written", fix="Wait for it to finish."):
            ...
    """
    path = _lock_file(folder)
    while True:
        with _open_lock_file(path) as file:
            _acquire(file, folder, activity, fix)
            if not _is_same(path, file):  # the previous owner removed the file meanwhile: try again
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
        raise FolderError(f"{str(folder)!r} is not a valid folder name: {error}.") from error
    name = real.name
    if len(os.fsencode(name)) > 200:  # file names are limited to 255 bytes
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return real.parent / f".{name}.lock"


def _open_lock_file(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+", encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FolderError(
            f"{path.parent} cannot be written: {reason}. Choose an output folder inside a folder with write permission."
        ) from error


def _acquire(file: TextIO, folder: Path, activity: str, fix: str) -> None:
    """Lock the file; raise FolderError with its owner if another process has locked it."""
    if fcntl is None:
        return
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            raise FolderError(f"{folder} is being {activity} by {_owner(file) or 'another process'}. {fix}") from None
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise FolderError(f"{file.name} cannot be locked: {error.strerror}. Use a local disk.") from error
            _check_owner(file, folder, activity, fix)
            return


def _check_owner(file: TextIO, folder: Path, activity: str, fix: str) -> None:
    """For file systems without locks: raise FolderError if the process named in the file still runs on this machine."""
    owner = _owner(file)
    match = re.fullmatch(r"process (\d{1,9}) on (.*)", owner)
    if match is None or match[2] != platform.node() or int(match[1]) == os.getpid():
        return
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return
    except OSError:  # it runs as another user
        pass
    raise FolderError(f"{folder} is being {activity} by {owner}. {fix}")


def _owner(file: TextIO) -> str:
    """The process that holds the lock, as written in the file."""
    file.seek(0)
    return file.read(200)


def _is_same(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
