"""Folders of trainings that several tests read: each is trained once in a run of pytest, whichever worker needs it."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

KEYED_BY_TEXT = (str, int, float, bool, type(None))


class TrainedFolders:
    """Calls a function that trains, once for the same data and settings, and returns the folder it wrote.

    `store(data, **settings)` is the folder, which no test may change; with `copy=True` it is a copy for the caller.
    `store.result(data, **settings)` is what the function returned, `store.events(data, **settings)` what it reported.
    Equal are data with the same bytes and file names, wherever they lie.
    """

    def __init__(self, train: Callable[..., Any], root: Path, new_folder: Callable[[str], Path]) -> None:
        self.train = train
        self.root = root
        self.new_folder = new_folder
        self.found: dict[Path, list[tuple[str, int, int]]] = {}

    def __call__(self, data: Any, *, copy: bool = False, **settings: Any) -> Path:
        run = self._entry(data, settings) / "run"
        if not copy:
            return run
        target = self.new_folder("copy") / "run"
        shutil.copytree(run, target)
        return target

    def result(self, data: Any, **settings: Any) -> Any:
        return self._returned(data, settings)[0]

    def events(self, data: Any, **settings: Any) -> list[Any]:
        events: list[Any] = self._returned(data, settings)[1]
        return events

    def check_unchanged(self) -> None:
        """Fail if a test of this worker wrote into a folder that others read."""
        for run, files in self.found.items():
            assert listing(run) == files, f"a test changed {run}; such a test asks for copy=True"

    def _returned(self, data: Any, settings: dict[str, Any]) -> Any:
        return pickle.loads((self._entry(data, settings) / "returned.pickle").read_bytes())

    def _entry(self, data: Any, settings: dict[str, Any]) -> Path:
        parts = [f"data={self._key(data)}"]
        parts += [f"{name}={self._key(settings[name], name)}" for name in sorted(settings)]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

        def train(entry: Path) -> None:
            events: list[Any] = []
            with curves_drawn():
                result = self.train(data, out=entry / "run", progress=events.append, **settings)
            (entry / "returned.pickle").write_bytes(pickle.dumps((result, events)))

        entry = made_once(self.root, f"{self.train.__name__}-{digest}", train)
        self.found.setdefault(entry / "run", listing(entry / "run"))
        return entry

    def _key(self, value: Any, name: str = "data") -> str:
        if isinstance(value, Path) or (isinstance(value, str) and "/" in value and Path(value).exists()):
            return self._key_of_path(Path(value))
        if isinstance(value, KEYED_BY_TEXT):
            return repr(value)
        if isinstance(value, dict):
            return "{" + ",".join(f"{key!r}:{self._key(item, name)}" for key, item in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ",".join(self._key(item, name) for item in value) + "]"
        if name != "data" and " at 0x" not in repr(value):
            return repr(value)
        raise TypeError(f"{name}: a {type(value).__name__} cannot be the key of a stored training")

    def _key_of_path(self, path: Path) -> str:
        if path.is_relative_to(self.root):
            return str(path.relative_to(self.root))
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        digests = [f"{file.name}:{hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
        return ",".join(digests)


def made_once(root: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` fills, called by the first worker that asks for the name."""
    folder, made = root / name, root / f"{name}.made"
    with FileLock(root / f"{name}.lock"):
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            made.touch()
    return folder


@contextmanager
def curves_drawn() -> Iterator[None]:
    """Draw curves also where a fixture of the test switches them off: others read the folder too."""
    from regard.training.output import write_run
    from regard.training.output.curves import draw_curves

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_run, "draw_curves", draw_curves)
        yield


def listing(folder: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of every file below a folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    stats = [(str(file.relative_to(folder)), file.stat()) for file in files]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def shared_root(factory: pytest.TempPathFactory, worker: str | None) -> Path:
    """A folder that all workers of this run share."""
    base = factory.getbasetemp()
    root = (base if worker is None else base.parent) / "trained"
    root.mkdir(exist_ok=True)
    return root
