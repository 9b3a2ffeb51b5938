"""Hashes, places and excerpts of all rows, about 150 bytes per row. Texts are not stored."""

from __future__ import annotations

import hashlib
from array import array

import numpy as np

from regard.data.check.collect import EXCERPT_LENGTH, excerpt
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.check.rules.minhash import BYTES, Sketcher, words_of
from regard.data.records import Place

MAX_SKETCHES = 2_000_000  # rows with a sketch and an excerpt; later rows are compared by hash only


def stable_hash(text: str) -> int:
    """A 64-bit hash of a text, the same in every process."""
    raw = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


class RowStore:
    """Columns of values per row, in the order of the rows.

    input_hashes: of what the model reads; equal for exact duplicates.
    normalized_hashes: of the same without case and punctuation.
    annotation_hashes: of the label, tags or answers.
    """

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.splits: dict[str, int] = {}
        self.file_numbers = array("I")
        self.split_numbers = array("B")
        self.lines = array("q")
        self.row_numbers = array("q")
        self.input_hashes = array("Q")
        self.normalized_hashes = array("Q")
        self.annotation_hashes = array("Q")
        self.word_counts = array("I")
        self.excerpt_ends = array("Q", [0])
        self.excerpts = bytearray()
        self.sketcher = Sketcher()

    def __len__(self) -> int:
        return len(self.input_hashes)

    def check_row(self, row: CheckedRow) -> None:
        place = row.place
        self.file_numbers.append(self.files.setdefault(place.file, len(self.files)))
        self.split_numbers.append(self.splits.setdefault(row.split, len(self.splits)))
        self.lines.append(-1 if place.line is None else place.line)
        self.row_numbers.append(-1 if place.row is None else place.row)
        input_hash = stable_hash(row.input_text)
        self.input_hashes.append(input_hash)
        self.annotation_hashes.append(stable_hash(row.annotation))
        question = row.texts[0][1] if row.texts[0][0] == "question" else None
        words, is_complete = words_of(row.input_text if question is None else question)
        context = stable_hash(row.texts[1][1]) if question is not None else 0
        has_words = bool(words) and is_complete
        self.normalized_hashes.append(stable_hash(f"{context} {' '.join(words)}") if has_words else input_hash)
        self.word_counts.append(len(words))
        if len(self) <= MAX_SKETCHES:
            self.excerpts += excerpt(row.input_text.replace("\x1f", " | ", 1), EXCERPT_LENGTH).encode(
                "utf-8", "replace"
            )
            self.excerpt_ends.append(len(self.excerpts))
            self.sketcher.add(words, context & 0xFFFFFFFF)

    def finish(self) -> None:
        """Nothing to do: the values are used by other rules."""

    def place(self, number: int) -> Place:
        line = self.lines[number]
        row = self.row_numbers[number]
        file = list(self.files)[self.file_numbers[number]]
        return Place(file, None if line < 0 else line, None if row < 0 else row)

    def split(self, number: int) -> str:
        return list(self.splits)[self.split_numbers[number]]

    def text(self, number: int) -> str:
        """The beginning of the text of a row; empty for rows without an excerpt."""
        if number >= self.sketched_rows:
            return ""
        return self.excerpts[self.excerpt_ends[number] : self.excerpt_ends[number + 1]].decode("utf-8")

    @property
    def sketched_rows(self) -> int:
        """The number of rows with a sketch and an excerpt: the first ones."""
        return len(self.excerpt_ends) - 1

    def sketches(self) -> np.ndarray:
        """The sketches of the first rows, (sketched_rows, BYTES)."""
        return np.frombuffer(self.sketcher.finish(), np.uint8).reshape(-1, BYTES)
