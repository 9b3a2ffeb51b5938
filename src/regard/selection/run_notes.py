"""Facts that are added to the run.json of a finished training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json, write_json
from regard.checkpoint.manifest import RUN


def add_to_run(folder: Path, name: str, value: Any) -> None:
    """Add a field to run.json."""
    new_file = folder / f".{RUN}.part"
    write_json(new_file, {**read_json(folder, RUN), name: value})
    new_file.replace(folder / RUN)
