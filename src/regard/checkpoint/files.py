"""Files of a folder: reading only inside the folder, and atomic writing of whole folders."""

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
from regard.errors import FolderError, setting
from regard.foreign import path_inside, read_json_value

EXPECTED = "Expected a model folder with config.json."


def model_files(folder: Path) -> list[Path]:
    """The files of a folder that belong to its model; none if it is not a folder."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.iterdir()
        if path.is_file() and matches(path.name, (*MODEL, *RUN_FILES, "*.safetensors"))
    ]


def read_any_json(folder: Path, name: str) -> Any:
    """The content of a JSON file; errors have the line and column."""
    try:
        return read_json_value(path_inside(folder, name))
    except FileNotFoundError as error:
        stopped = name == "config.json" and (folder / "state" / "state.json").exists()
        advice = "Its training was stopped: go on with regard train --resume." if stopped else EXPECTED
        raise FolderError(f"{folder} has no {name}. {advice}") from error


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object."""
    content = read_any_json(folder, name)
    if not isinstance(content, dict):
        raise FolderError(f"{folder / name} holds a {type(content).__name__}, expected a JSON object.")
    return content


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def all_but_card(written_before: set[str]) -> set[str]:
    """The files that are removed from an overwritten folder by default: all that regard wrote, except README.md."""
    return written_before - {CARD}


@contextmanager
def atomic_folder(
    target: Path, *, overwrite: bool = False, drop: Callable[[set[str]], set[str]] = all_but_card, manifest: bool = True
) -> Iterator[Path]:
    """A temporary folder that replaces the target at the end, atomically: there is the old one or the new one.

    Files of an old folder that the new one does not have are copied, except those that `drop` chooses from the files
    that regard wrote (see `regard.checkpoint.manifest`). The written files are listed in the folder's manifest.
    """
    target = _real(target)
    occupied = target.is_dir() and any(target.iterdir())
    if occupied and not overwrite:
        raise FolderError(f"{target} exists and is not empty. Name a new folder, or use {setting('overwrite', True)}.")
    if Path.cwd().is_relative_to(target):
        raise FolderError(f"{target} is the current folder, which cannot be replaced. Write to another folder.")
    temporary = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}.part"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        yield temporary
        if target.is_dir():
            shutil.copymode(target, temporary)
        written = files_of(temporary)
        written_before = owned(target) if occupied else set()
        if occupied:
            _carry_over(target, temporary, leave=drop(written_before) | {MANIFEST})
        if manifest:
            write_manifest(temporary, written | (written_before & files_of(temporary)))
        _flush(temporary)
        _put(temporary, target, occupied=occupied)
    except OSError as error:
        if isinstance(error, FolderError):
            raise
        reason = error.strerror or str(error)
        raise FolderError(f"{target} could not be written: {reason}. Nothing was changed.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _real(target: Path) -> Path:
    """The folder that a link points to, or the folder itself."""
    try:
        real = target.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise FolderError(f"{str(target)!r} cannot be a folder's name: {error}.") from error
    if real.exists() and not real.is_dir():
        raise FolderError(f"{target} is a file; expected a folder to write.")
    return real


def _carry_over(old: Path, temporary: Path, *, leave: set[str]) -> None:
    """Copy files that only the old folder has, links as links, and empty folders."""
    for place, folders, names in os.walk(old, onerror=_fail):
        here = Path(place)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in [*names, *links]:
            path = (here / name).relative_to(old)
            if path.as_posix() not in leave and not os.path.lexists(temporary / path):
                (temporary / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here / name, temporary / path, follow_symlinks=False)
        if not folders and not names:
            (temporary / here.relative_to(old)).mkdir(parents=True, exist_ok=True)


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


def _put(temporary: Path, target: Path, *, occupied: bool) -> None:
    """Rename the new folder to the target, in one exchange if the system supports it; undone if it fails."""
    if not occupied:
        temporary.replace(target)
        _settle(target, lambda: target.replace(temporary))
    elif _exchange(temporary, target):
        _settle(target, lambda: _exchange(temporary, target))
    else:
        aside = temporary.with_suffix(".old")
        target.replace(aside)
        try:
            temporary.replace(target)
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
