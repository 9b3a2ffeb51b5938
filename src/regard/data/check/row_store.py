"""What is kept of every row: hashes and its place, not its text. Some 150 bytes a row, whatever the texts."""

from __future__ import annotations

import hashlib
from array import array

import numpy as np

from regard.data.check.collect import SHOWN, excerpt
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.check.rules.minhash import BYTES, Sketcher, words_of
from regard.data.records import Place

MOST = 2_000_000  # rows whose sketch and beginning are kept; later ones are compared by hash alone


def stable_hash(text: str) -> int:
    """64 bits of a text, the same in every run."""
    raw = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


class RowStore:
    """Every row by number, in the order in which they were seen."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.splits: dict[str, int] = {}
        self.file_of, self.split_of = array("I"), array("B")
        self.line, self.row = array("q"), array("q")
        self.said, self.plain, self.told = array("Q"), array("Q"), array("Q")
        self.words = array("I")
        self.starts, self.beginnings = array("Q", [0]), bytearray()
        self.sketcher = Sketcher()

    def __len__(self) -> int:
        return len(self.said)

    def check_row(self, row: CheckedRow) -> None:
        place = row.place
        self.file_of.append(self.files.setdefault(place.file, len(self.files)))
        self.split_of.append(self.splits.setdefault(row.split, len(self.splits)))
        self.line.append(-1 if place.line is None else place.line)
        self.row.append(-1 if place.row is None else place.row)
        said = stable_hash(row.input_text)
        self.said.append(said)
        self.told.append(stable_hash(row.annotation))
        question = row.texts[0][1] if row.texts[0][0] == "question" else None
        words, whole = words_of(row.input_text if question is None else question)
        context = stable_hash(row.texts[1][1]) if question is not None else 0
        self.plain.append(stable_hash(f"{context} {' '.join(words)}") if words and whole else said)
        self.words.append(len(words))
        if len(self) <= MOST:
            self.beginnings += excerpt(row.input_text.replace("\x1f", " | ", 1), SHOWN).encode("utf-8", "replace")
            self.starts.append(len(self.beginnings))
            self.sketcher.add(words, context & 0xFFFFFFFF)

    def finish(self) -> None:
        """Everything is asked for later."""

    def place(self, number: int) -> Place:
        line, row = self.line[number], self.row[number]
        file = list(self.files)[self.file_of[number]]
        return Place(file, None if line < 0 else line, None if row < 0 else row)

    def split(self, number: int) -> str:
        return list(self.splits)[self.split_of[number]]

    def text(self, number: int) -> str:
        """The beginning of a row's text."""
        if number >= len(self.starts) - 1:
            return ""
        return self.beginnings[self.starts[number] : self.starts[number + 1]].decode("utf-8")

    def sketches(self) -> np.ndarray:
        """(rows, BYTES) of the rows that have a sketch."""
        return np.frombuffer(self.sketcher.done(), np.uint8).reshape(-1, BYTES)
