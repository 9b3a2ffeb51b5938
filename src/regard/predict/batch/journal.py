"""Rows that are written one by one and survive a kill: `--resume` goes on after the last ones that are complete.

The folder of the output `NAME` has `.NAME.rows.part`, the rows so far as JSON lines, and `.NAME.rows.json`: how
many of them are complete and what they were made from. The part is locked while its process lives.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from regard.data.atomic import locked_part, put_in_place, real_path
from regard.errors import FolderError

Saved = dict[str, Any]


class Journal:
    """Open for writing; `rows` are complete already, from a run that was stopped."""

    def __init__(self, part: Path, note: Path, identity: Mapping[str, Any]) -> None:
        self.part, self.note, self.identity = part, note, dict(identity)
        self.rows = 0
        self.inputs: str | None = None  # a digest of the inputs of the rows that are there
        self.names: dict[str, str] | None = None  # what the predictions are called
        self.removed = 0  # rows of an earlier run that are given up
        self._content = hashlib.blake2b(digest_size=16)
        self._file = part.open("r+b")
        self._moved = False

    def write(self, line: str) -> None:
        """One more row."""
        content = line.encode("utf-8", "surrogatepass")
        self._content.update(content)
        self._file.write(content)

    def mark(self, rows: int, inputs: str, names: Mapping[str, str]) -> None:
        """All rows so far are complete: a resumption starts here."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows = rows
        saved = {
            "rows": rows,
            "bytes": self._file.tell(),
            "content": self._content.hexdigest(),
            "inputs": inputs,
            "names": dict(names),
            "identity": self.identity,
        }
        new_file = self.note.with_suffix(".new")
        new_file.write_text(json.dumps(saved), encoding="utf-8")
        new_file.replace(self.note)

    def put_in_place(self, output: Path) -> None:
        """The rows are the output itself: give them its name."""
        self._file.close()
        put_in_place(self.part, output)
        self._moved = True

    def close(self, *, keep: bool = False) -> None:
        """Remove the journal, or keep it where there is something to resume from."""
        self._file.close()
        self.note.with_suffix(".new").unlink(missing_ok=True)
        if keep and self.note.exists():
            return
        if not self._moved:
            self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def flush(self) -> None:
        self._file.flush()

    def restore(self, output: Path) -> None:
        """Go on after the complete rows of the run that was stopped; begin where there are none."""
        saved = self._saved(output)
        if saved is None:
            self.restart()
            return
        differing = [name for name, value in self.identity.items() if saved["identity"].get(name) != value]
        if differing:
            raise FolderError(
                f"{output} cannot be resumed: the run that was stopped differs in {' and '.join(differing)}. "
                "Run it as before, or leave --resume out to start again."
            )
        self._file.seek(0)
        left = saved["bytes"]
        while chunk := self._file.read(min(left, 1 << 20)):
            self._content.update(chunk)
            left -= len(chunk)
        if left or self._content.hexdigest() != saved["content"]:
            raise FolderError(
                f"{output} cannot be resumed: the rows in {self.part} were changed or cut short. Leave --resume out to "
                "start again."
            )
        self._file.truncate(saved["bytes"])
        self.rows, self.inputs, self.names = saved["rows"], saved["inputs"], saved["names"]

    def restart(self) -> None:
        """Give up what an earlier run left."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            self.removed = int(json.loads(self.note.read_text(encoding="utf-8"))["rows"])
        self.note.unlink(missing_ok=True)
        self._file.truncate(0)

    def _saved(self, output: Path) -> Saved | None:
        if not self.note.exists() or self.part.stat().st_size == 0:
            return None
        try:
            saved: Saved = json.loads(self.note.read_text(encoding="utf-8"))
            kinds = {"rows": int, "bytes": int, "content": str, "inputs": str, "names": dict, "identity": dict}
            whole = all(isinstance(saved[name], kind) for name, kind in kinds.items()) and saved["bytes"] >= 0
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            whole = False
        if not whole:
            raise FolderError(f"{output} cannot be resumed: {self.note} is damaged. Leave --resume out to start again.")
        return saved


@contextmanager
def open_journal(output: Path, identity: Mapping[str, Any], *, resume: bool) -> Iterator[Journal]:
    """A journal next to the output. It is removed at the end, but kept if a failure would lose complete rows.

    Raises FolderError where another process writes the same output, and where there is something to resume that was
    made with another `identity`.
    """
    real = real_path(output)
    part = real.with_name(f".{real.name[:100]}.rows.part")
    note = part.with_suffix(".json")
    with locked_part(part):
        journal = Journal(part, note, identity)
        try:
            journal.restore(output) if resume else journal.restart()
            yield journal
        except BaseException:
            journal.close(keep=True)
            raise
        journal.close()
