"""Files of a folder: read only what lies inside it, written whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.checkpoint.manifest import CARD, MANIFEST, MODEL, RUN_FILES, files_of, matches, owned, write_manifest
from regard.errors import FolderError
from regard.foreign import path_inside, read_json_value


def model_files(folder: Path) -> list[Path]:
    """The files of a folder that make up its model; none where it is no folder."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.is_file() and matches(path.name, (*MODEL, *RUN_FILES, "*.safetensors"))
    ]


def read_any_json(folder: Path, name: str) -> Any:
    """What a JSON file holds, with line and column where it is broken."""
    try:
        return read_json_value(path_inside(folder, name))
    except FileNotFoundError as error:
        raise FolderError(f"{folder} has no {name}. Expected a model folder with config.json.") from error


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object."""
    found = read_any_json(folder, name)
    if not isinstance(found, dict):
        raise FolderError(f"{folder / name} holds a {type(found).__name__}, expected a JSON object.")
    return found


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def all_but_card(ours: set[str]) -> set[str]:
    """What is left out of an overwritten folder unless something else is asked for: all of regard but the README."""
    return ours - {CARD}


@contextmanager
def atomic_folder(
    target: Path, *, overwrite: bool = False, drop: Callable[[set[str]], set[str]] = all_but_card, manifest: bool = True
) -> Iterator[Path]:
    """A temporary folder that takes the target's place at the end, flushed: the old one or the new one, never half.

    Files of an old folder that the new one does not write are carried over, except those that `drop` picks from what
    regard has written there (see `regard.checkpoint.manifest`): unless told, all but its README. The files written are
    put into the folder's manifest.
    """
    target = _real(target)
    occupied = target.is_dir() and any(target.iterdir())
    if occupied and not overwrite:
        raise FolderError(f"{target} exists and is not empty. Name a new folder, or allow overwriting.")
    if Path.cwd().is_relative_to(target):
        raise FolderError(f"{target} is the folder you stand in; replacing it would take it away. Write to another.")
    fresh = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        yield fresh
        if target.is_dir():
            shutil.copymode(target, fresh)
        written = files_of(fresh)
        ours = owned(target) if occupied else set()
        if occupied:
            _carry_over(target, fresh, leave=drop(ours) | {MANIFEST})
        if manifest:
            write_manifest(fresh, written | (ours & files_of(fresh)))
        _flush(fresh)
        _put(fresh, target, occupied=occupied)
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        what = error.strerror or str(error)
        raise FolderError(f"{target} could not be written: {what}. Nothing was changed.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _real(target: Path) -> Path:
    """The folder itself where a link to it was named."""
    try:
        real = target.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise FolderError(f"{str(target)!r} cannot be a folder's name: {error}.") from error
    if real.exists() and not real.is_dir():
        raise FolderError(f"{target} is a file; expected a folder to write.")
    return real


def _carry_over(old: Path, fresh: Path, *, leave: set[str]) -> None:
    """Copy what only the old folder has, links as links, empty folders too."""
    for place, folders, names in os.walk(old, onerror=_fail):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in [*names, *links]:
            path = (here / name).relative_to(old)
            if path.as_posix() not in leave and not os.path.lexists(fresh / path):
                (fresh / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here / name, fresh / path, follow_symlinks=False)
        if not folders and not names:
            (fresh / here.relative_to(old)).mkdir(parents=True, exist_ok=True)


def _fail(error: OSError) -> None:
    raise error


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        if not path.is_symlink():
            _flush_one(path)
    _flush_one(folder)


def _flush_one(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(fresh: Path, target: Path, *, occupied: bool) -> None:
    """Rename into place; over an existing folder by one exchange where the system can. Taken back where it fails."""
    if not occupied:
        fresh.replace(target)
        _settle(target, lambda: target.replace(fresh))
    elif _exchange(fresh, target):
        _settle(target, lambda: _exchange(fresh, target))
    else:
        aside = fresh.with_suffix(".old")
        target.replace(aside)
        try:
            fresh.replace(target)
        except OSError:
            aside.replace(target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _settle(target: Path, undo: Callable[[], Any]) -> None:
    """Make the new name last through a loss of power."""
    try:
        _flush_one(target.parent)
    except OSError:
        undo()
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names atomically (Linux); False where the system has no such call."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
