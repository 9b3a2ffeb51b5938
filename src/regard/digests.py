"""SHA-256 digests of files and JSON objects, to detect damage before a file is used."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.foreign import open_regular_file

DIGEST = "digest"  # field of a JSON object with the digest of its other fields
THREADS = 4
Digests = dict[str, dict[str, Any]]  # by file name: {"bytes": its size, "sha256": its digest}


def file_digest(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a regular file. This takes less time than writing the file."""
    with open_regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        return {"bytes": size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def file_digests(folder: Path, names: Iterable[str]) -> Digests:
    """Digests of several files in a folder, by file name, computed in parallel."""
    every = list(names)
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return dict(zip(every, pool.map(file_digest, [folder / name for name in every]), strict=True))


def describe_damage(folder: Path, digests: Mapping[str, Any]) -> str | None:
    """A sentence about the first file that is missing or has changed; None if all files match their digests."""
    for name, expected in digests.items():
        if not isinstance(expected, dict):
            return f"there is no digest of {folder / name}"
        try:
            size = (folder / name).stat().st_size
            if size != expected.get("bytes"):
                return f"{folder / name} is damaged: it has {size:,} bytes, expected {str(expected.get('bytes'))[:20]}"
            if file_digest(folder / name) != expected:
                return f"{folder / name} is damaged: its content has changed since it was written"
        except FileNotFoundError:
            return f"{folder / name} is missing"
        except OSError as error:
            return f"{folder / name} cannot be read: {error.strerror or error}"
    return None


def with_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object with the field "digest" added: a digest of its other fields."""
    as_json: dict[str, Any] = json.loads(json.dumps(dict(content)))
    return {**as_json, DIGEST: _digest(as_json)}


def has_valid_digest(content: Mapping[str, Any]) -> bool:
    """Whether the object is what `with_digest` made. How its numbers and spaces are written does not matter."""
    return content.get(DIGEST) == _digest({name: value for name, value in content.items() if name != DIGEST})


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
