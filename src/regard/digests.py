"""Digests of files, by which damage is noticed before it is used."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.errors import FolderError
from regard.foreign import open_regular

DIGEST = "digest"  # the field of a JSON object that holds the digest of its other fields
THREADS = 4


def file_digest(path: Path) -> str:
    """SHA-256 of a regular file: processors have instructions for it, so that writing the file takes longer."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The digests of files of a folder, by name; several files at once."""
    every = list(names)
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return dict(zip(every, pool.map(file_digest, [folder / name for name in every]), strict=True))


def damaged(folder: Path, digests: Mapping[str, str]) -> str | None:
    """The first file that is missing or not the one that was written, in words; None where all are."""
    for name, expected in digests.items():
        if not (folder / name).exists():
            return f"{folder / name} is missing"
        try:
            found = file_digest(folder / name)
        except (OSError, FolderError) as error:
            return f"{folder / name} cannot be read: {error}"
        if found != expected:
            return f"{folder / name} is damaged: its content is not what was written"
    return None


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the digest of its content."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(content)))
    return {**plain, DIGEST: _digest(plain)}


def is_sealed(content: Mapping[str, Any]) -> bool:
    """Whether the object is what `sealed` made. How its numbers and spaces are written does not matter."""
    return content.get(DIGEST) == _digest({name: value for name, value in content.items() if name != DIGEST})


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
