"""Folders in the user's cache: compiled kernels, vectors, pages of lessons."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def user_cache(*names: str) -> Path | None:
    """A folder in the user's cache, created if needed; None if it cannot be written."""
    with contextlib.suppress(OSError, RuntimeError):  # no home folder
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base.joinpath("regard", *names)
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    return None
