"""Files of a folder: read only what lies inside it, written whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import FolderError


def root_of(folder: Path) -> Path:
    """Where links of the folder may lead: inside it, or inside the hub's own cache entry it is a snapshot of."""
    real = folder.resolve()
    snapshot = real.parent.name == "snapshots" and real.parent.parent.name.startswith("models--")
    return real.parent.parent if snapshot else real


def inside(folder: Path, name: str) -> Path:
    """The file of that name, refused before it is read where it would lie outside the folder."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or not name or "\0" in name:
        raise FolderError(f'{folder}: the file name "{name}" leads out of the folder. Names must stay inside it.')
    if not (folder / path).resolve().is_relative_to(root_of(folder)):
        raise FolderError(f'{folder}: "{name}" is a link out of the folder. Copy the file into the folder instead.')
    return folder / path


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object, with line and column where it is broken."""
    path = inside(folder, name)
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise FolderError(f"{folder} has no {name}. Expected a model folder with config.json.") from error
    except UnicodeDecodeError as error:
        raise FolderError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise FolderError(f"{path} line {error.lineno} column {error.colno}: not JSON: {error.msg}.") from error
    except OSError as error:
        raise FolderError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not isinstance(found, dict):
        raise FolderError(f"{path} holds a {type(found).__name__}, expected a JSON object.")
    return found


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


@contextmanager
def whole_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary folder that takes the target's place at the end, flushed: the old one or the new one, never half.

    Files of an old folder that the new one does not write are carried over, except weights.
    """
    if target.exists() and not target.is_dir():
        raise FolderError(f"{target} is a file; expected a folder to write.")
    occupied = target.is_dir() and any(target.iterdir())
    if occupied and not overwrite:
        raise FolderError(f"{target} exists and is not empty. Name a new folder, or allow overwriting.")
    fresh: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        yield fresh
        if occupied:
            _carry_over(target, fresh)
        fresh.chmod(0o755)
        _flush(fresh)
        _put(fresh, target)
        _flush_one(target.parent)
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        what = error.strerror or str(error)
        raise FolderError(f"{target} could not be written: {what}. Nothing was changed.") from error
    finally:
        if fresh is not None and fresh.exists():
            shutil.rmtree(fresh, ignore_errors=True)


def _carry_over(old: Path, fresh: Path) -> None:
    for path in old.iterdir():
        weights = path.name.endswith((".safetensors", ".safetensors.index.json"))
        if not weights and not (fresh / path.name).exists():
            copy: Callable[..., Any] = shutil.copytree if path.is_dir() and not path.is_symlink() else shutil.copy2
            copy(path, fresh / path.name)


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        _flush_one(path)
    _flush_one(folder)


def _flush_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(fresh: Path, target: Path) -> None:
    """Rename into place; over an existing folder by one exchange where the system can."""
    if not target.exists() or not any(target.iterdir()):
        fresh.replace(target)
        return
    if _exchange(fresh, target):
        shutil.rmtree(fresh, ignore_errors=True)  # now the old one
        return
    aside = fresh.with_suffix(".old")
    target.replace(aside)
    fresh.replace(target)
    shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names atomically (Linux); False where the system has no such call."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
