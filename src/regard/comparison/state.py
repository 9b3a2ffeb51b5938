"""The folder of a comparison: whether it can be resumed, and what was written to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json
from regard.comparison.result import Comparison
from regard.data.atomic import atomic_text_file
from regard.errors import FolderError, bullet_list, setting

STATE, RESULTS, PARETO, CURVES = "comparison.json", "results.json", "pareto.png", "learning_curves.png"
REPORT = "report.html"
OWN = (STATE, RESULTS, PARETO, CURVES, REPORT, "models", "predictions")


def open_folder(folder: Path, identity: Mapping[str, Any], *, overwrite: bool) -> None:
    """Create the folder, or go on with the comparison of the same rows and settings that is in it."""
    if folder.exists() and not folder.is_dir():
        raise FolderError(f"{folder} is a file; expected a folder to write.")
    stored = read_json(folder, STATE) if (folder / STATE).exists() else None
    if stored is None and folder.is_dir() and any(folder.iterdir()):
        names = bullet_list(sorted(path.name for path in folder.iterdir()))
        raise FolderError(f"{folder} is not empty and holds no comparison:\n{names}\nName another folder.")
    if stored is not None and overwrite:
        _remove(folder)
        stored = None
    if stored is not None:
        _check_same(folder, stored, identity)
        return
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / STATE, {**identity, "test_uses": 1})


def _check_same(folder: Path, stored: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raise FolderError if the comparison in the folder had other rows or settings."""
    words = {"data": "training rows", "test": "test rows"}
    different = []
    for name, value in _plain(identity).items():
        if name == "settings":
            different += _differences(stored.get(name) or {}, value)
        elif stored.get(name) != value:
            different.append(words.get(name, name))
    if different:
        raise FolderError(
            f"{folder} holds a comparison that differs in: {', '.join(different)}. Its results cannot be compared with "
            f"new ones. Name another folder with {setting('out')}, or start over with {setting('overwrite', True)}."
        )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Settings with other values, such as "steps (12, now 20)"."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return [f"{name} ({before.get(name, 'not given')}, now {now.get(name, 'not given')})" for name in names]


def _remove(folder: Path) -> None:
    for name in OWN:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def count_test_use(folder: Path, *, new_models: bool) -> int:
    """How often the test rows were used: once, and again for models that are added after a table was made."""
    stored = read_json(folder, STATE)
    if new_models and (folder / RESULTS).exists():
        stored["test_uses"] = int(stored.get("test_uses", 1)) + 1
        (folder / RESULTS).unlink()  # until the new table is there
        _write(folder / STATE, stored)
    return int(stored.get("test_uses", 1))


def write_results(folder: Path, comparison: Comparison) -> None:
    """results.json: every field of the comparison."""
    _write(folder / RESULTS, comparison.json())


def read_results(folder: str | Path) -> Comparison:
    """The comparison that was written to a folder."""
    path = Path(folder).expanduser()
    if not (path / RESULTS).exists():
        raise FolderError(f"{path} has no {RESULTS}. Give the folder of a comparison that has ended.")
    return Comparison.from_json(read_json(path, RESULTS))


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(dict(values)))
    return result


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_text_file(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
