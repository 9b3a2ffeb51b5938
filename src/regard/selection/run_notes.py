"""Facts that are added to the run.json of a finished training, and whether the final training has begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json, write_json
from regard.checkpoint.manifest import RUN

FINAL_MARK = "final"  # a file in the folder of a cross-validation or search


def add_to_run(folder: Path, name: str, value: Any) -> None:
    """Add a field to run.json."""
    new_file = folder / f".{RUN}.part"
    write_json(new_file, {**read_json(folder, RUN), name: value})
    new_file.replace(folder / RUN)


def mark_final(work: Path) -> None:
    """Note in the folder of a selection that its final training begins."""
    (work / FINAL_MARK).touch()


def final_begun(work: Path) -> bool:
    """Whether a selection that was stopped had begun its final training, so that its output folder has files."""
    return (work / FINAL_MARK).exists()
