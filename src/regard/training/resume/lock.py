"""The output folder of a training: checked, and locked against other processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from regard.checkpoint.manifest import MODEL, RUN, RUN_FILES, files_of, matches, owned
from regard.errors import DataError, FolderError, InputError, MissingExtra, bullet_list, setting
from regard.locks import folder_lock
from regard.training.engine.distributed.world import is_main_process
from regard.training.resume.state import STATE, state_files

P = ParamSpec("P")
R = TypeVar("R")


def exclusive(training: Callable[P, R]) -> Callable[P, R]:
    """A decorator: only one process or thread runs the function for the same folder `out`.

    All ranks started by torchrun share a folder: the main process locks it for all of them.
    """

    @functools.wraps(training)
    def locked(*args: P.args, **settings: P.kwargs) -> R:
        out: Any = settings.get("out")
        if out is None or not is_main_process():
            return training(*args, **settings)
        fix = "Wait until it has ended, stop it, or name another folder with --out."
        folder = Path(out).expanduser()
        with _without_empty_folders(folder), folder_lock(folder, activity="trained", fix=fix):
            return training(*args, **settings)

    return locked


@contextmanager
def _without_empty_folders(folder: Path) -> Iterator[None]:
    """Remove the folder, and those above it, if bad input leaves them empty and they did not exist before.

    A training that is stopped by a signal keeps its empty folder: `--resume` begins it.
    """
    created = []
    with suppress(OSError):  # a name that is too long, for example, which is an error below
        created = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except (InputError, DataError, FolderError, MissingExtra):
        for place in created:
            with suppress(OSError):  # it has files
                place.rmdir()
        raise


def claim(folder: Path, *, resume: bool, overwrite: bool, resumable: bool = True) -> Path:
    """Create the output folder; an error if it has files that must not be overwritten.

    resumable: whether the user could resume what is in the folder.
    """
    if resume and overwrite:
        both = f"{setting('resume')} and {setting('overwrite')}"
        raise InputError(f"{both} were both given; give one of them.")
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file; expected a folder to write.")
    if Path.cwd().is_relative_to(folder.resolve()):
        raise FolderError(f"{folder} is the current folder, which cannot be replaced. Name another with --out.")
    occupied = folder.is_dir() and any(folder.iterdir())
    if resume and not folder.exists():
        raise FolderError(f"{folder} holds no training that could be resumed. Leave --resume out to begin one.")
    if resume and (folder / "config.json").exists() and not (folder / RUN).exists():
        raise FolderError(f"{folder} holds a model that was not trained here, so there is nothing to resume.")
    if occupied and not (resume or overwrite):
        both = "--resume to continue its training, or --overwrite" if resumable else "--overwrite"
        raise FolderError(f"{folder} exists and is not empty. Use {both} to start over.")
    if occupied:
        check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"{folder} cannot be created: {error.strerror}.") from error
    return folder


def check_free(folder: Path) -> None:
    """Raise FolderError if a training would replace files in the folder that regard has not written."""
    names = (*MODEL, *RUN_FILES, "metrics.part")
    foreign = sorted(name for name in files_of(folder) - owned(folder) if matches(name, names))
    if (folder / STATE).exists() and not state_files(folder):
        foreign.append(f"{STATE}/")
    if foreign:
        raise FolderError(
            f"{folder} holds files that were not written by regard and would be replaced:\n{bullet_list(foreign)}\n"
            "Move them to another folder, or name another folder with --out."
        )
