"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from regard.errors import FolderError, InputError


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A path beside the target that takes its place at the end, flushed: the old file or the new one, never half."""
    fresh = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        yield fresh
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(target)
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        raise FolderError(f"{target} cannot be written: {error.strerror or error}. Nothing was changed.") from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


@contextmanager
def whole_file(target: Path) -> Iterator[TextIO]:
    """The same for a file of text, open."""
    with whole(target) as fresh, fresh.open("w", encoding="utf-8") as file:
        yield file


def check_place(target: Path, what: str) -> None:
    """Whether a file can be written there, before the work is done."""
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} of {what} does not exist. Make it first.")
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{what} {target} cannot be written there. Name another place.")
