"""Rows in shards, and a folder with one file for each shard.

A part is written under another name and then renamed, so that it is complete or not there. `parts.jsonl` has a line for
each part with the digest of its rows: a run that is started again computes only the parts that are missing, and stops
if the rows have changed. No row is ever in two parts. This module knows no Ray.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.atomic import atomic_path
from regard.errors import FolderError, InputError

SETTINGS, PARTS = "settings.json", "parts.jsonl"


@dataclass(frozen=True)
class Shard:
    """Rows that are computed together."""

    number: int
    start: int  # number of the first row
    items: Sequence[Any]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(list(self.items)).encode("utf-8", "surrogatepass")).hexdigest()


def make_shards(items: Iterable[Any], rows: int) -> Iterator[Shard]:
    """Rows in order, so many for each shard."""
    if rows < 1:
        raise InputError(f"a shard has {rows} rows, expected at least 1.")
    iterator, start = iter(items), 0
    for number in itertools.count():
        part = list(itertools.islice(iterator, rows))
        if not part:
            return
        yield Shard(number, start, part)
        start += len(part)


class ShardFolder:
    """The output of a run. Raises FolderError if the folder has that of another one."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / SETTINGS
        if file.exists():
            known = json.loads(file.read_text(encoding="utf-8"))
            changed = sorted(name for name in known | settings if known.get(name) != settings.get(name))
            if changed:
                raise FolderError(f"{folder} has the output of a run with other settings: {', '.join(changed)}.")
        elif any(folder.iterdir()):
            raise FolderError(f"{folder} is not empty. Give a new folder, or that of a run to continue.")
        else:
            with atomic_path(file) as part:
                Path(part).write_text(json.dumps(settings), encoding="utf-8")
        self.done = self._read_parts()

    def _read_parts(self) -> dict[int, dict[str, Any]]:
        file = self.folder / PARTS
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        done = {}
        for line in lines:
            try:
                values = json.loads(line)
            except ValueError:  # the last line of a run that was killed
                continue
            if self.part(values["number"]).exists():
                done[values["number"]] = values
        return done

    def part(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.jsonl"

    def is_done(self, shard: Shard) -> bool:
        """Whether a part was written. Raises InputError if it was for other rows."""
        values = self.done.get(shard.number)
        if values is None:
            return False
        if values["digest"] != shard.digest:
            raise InputError(f"{self.part(shard.number)} is for other rows: the input has changed. Give a new folder.")
        return True

    def write(self, shard: Shard, answers: Sequence[dict[str, Any]]) -> None:
        """Write the answers of a shard; its rows and answers are numbered from the start of the input."""
        assert len(answers) == len(shard.items)
        lines = [json.dumps({"index": shard.start + at, **answer}) for at, answer in enumerate(answers)]
        with atomic_path(self.part(shard.number)) as part:
            Path(part).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        values = {"number": shard.number, "start": shard.start, "rows": len(answers), "digest": shard.digest}
        with (self.folder / PARTS).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(values)}\n")
        self.done[shard.number] = values


ComputedShard = tuple[Shard, Sequence[dict[str, Any]]]
Compute = Callable[[Iterator[Shard]], Iterator[ComputedShard]]  # in any order


def run_shards(folder: ShardFolder, shards: Iterable[Shard], compute: Compute) -> Iterator[int]:
    """Compute the shards that are missing; yields the rows that are done after each, those of an earlier run first."""
    rows = 0

    def missing() -> Iterator[Shard]:
        nonlocal rows
        for shard in shards:
            if folder.is_done(shard):
                rows += len(shard.items)
            else:
                yield shard

    for shard, answers in compute(missing()):
        folder.write(shard, answers)
        rows += len(shard.items)
        yield rows
    yield rows
