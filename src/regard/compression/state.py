"""The work folder of a compression, so that a killed one goes on: candidates, their results and rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.checkpoint.files import read_json
from regard.compression.candidates import CandidateSpec
from regard.compression.result import CandidateResult
from regard.data.atomic import atomic_path, atomic_text_file
from regard.digests import has_valid_digest, with_digest
from regard.errors import FolderError, setting
from regard.metrics.paired.rows import RowTable

STATE = "compression.json"
RESULT, ROWS = "result.json", "rows.npz"


@dataclass(frozen=True)
class WorkFolder:
    """The files of all candidates."""

    path: Path

    @classmethod
    def of(cls, out: Path) -> WorkFolder:
        """Beside the folder that is written in the end."""
        return cls(out.with_name(f"{out.name}.compress"))

    def open(self, identity: Mapping[str, Any], *, overwrite: bool) -> None:
        """Create it, or go on with the compression of the same model and rows that is in it."""
        plain: dict[str, Any] = json.loads(json.dumps(dict(identity)))
        if overwrite and (self.path / STATE).is_file():
            shutil.rmtree(self.path)
        if (self.path / STATE).is_file():
            stored = read_json(self.path, STATE)
            different = [name for name, value in plain.items() if stored.get(name) != value]
            if different:
                raise FolderError(
                    f"{self.path} holds a compression that differs in: {', '.join(different)}. Name another folder "
                    f"with {setting('out')}, or start over with {setting('overwrite', True)}."
                )
            return
        if self.path.is_dir() and any(self.path.iterdir()):
            raise FolderError(f"{self.path} is not empty and holds no compression. Remove it, or name another --out.")
        self.path.mkdir(parents=True, exist_ok=True)
        _write(self.path / STATE, plain)

    @property
    def teacher_cache(self) -> Path:
        return self.path / "teacher"

    def folder(self, name: str) -> Path:
        """All files of a candidate."""
        return self.path / "candidates" / name

    def model(self, candidate: CandidateSpec) -> Path:
        """The model folder of a candidate."""
        return self.folder(candidate.slug) / "model"

    def read(self, name: str, like: RowTable | None) -> tuple[CandidateResult, RowTable | None, RowTable | None] | None:
        """The result and the rows of a finished candidate; None if it has not ended. `like` has the scores of rows."""
        folder = self.folder(name)
        if not (folder / RESULT).is_file():
            return None
        values = read_json(folder, RESULT)
        if not has_valid_digest(values):
            return None
        values.pop("digest")
        result = CandidateResult.from_json(values)
        if like is None or not (folder / ROWS).is_file():
            return result, None, None
        with np.load(folder / ROWS, allow_pickle=False) as stored:
            return result, RowTable(stored["dev"], like.scores), RowTable(stored["test"], like.scores)

    def write(self, name: str, result: CandidateResult, dev: RowTable | None, test: RowTable | None) -> None:
        """Store the rows, then the result: a result without rows is not finished."""
        folder = self.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        if dev is not None and test is not None:
            with atomic_path(folder / ROWS) as part, part.open("wb") as file:
                np.savez(file, allow_pickle=False, dev=dev.features, test=test.features)
        _write(folder / RESULT, with_digest(result.json()))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_text_file(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
