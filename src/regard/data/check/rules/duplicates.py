"""Find duplicates: within a split, with two different labels, or in two splits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.data.check.collect import FindingCollector
from regard.data.check.finding import Overlap, describe_place
from regard.data.check.row_store import RowStore
from regard.data.check.rules.minhash import similar_pairs

SHORT = 4  # words; duplicates of shorter texts are common, so they are notes only
MIN_WORDS = 8  # of a text that is compared for near-duplicates
MIN_SIMILARITY = 0.66  # fraction of words and word pairs in common
MIN_SIMILARITY_OF_TEMPLATES = 0.9  # if many texts follow a template
RowNumbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class DuplicateRule:
    """Compares all rows after the last one.

    1. Rows with the same input are exact duplicates.
    2. Of the others, rows with the same input but for case and punctuation are near-duplicates.
    3. Of the others, rows with similar MinHash sketches are near-duplicates.

    Duplicates in two splits are leaks; exact duplicates with different labels are conflicts.
    """

    def __init__(self, collector: FindingCollector, rows: RowStore, *, task: str | None) -> None:
        self.collector = collector
        self.rows = rows
        self.task = task
        self.exact: Counter[tuple[str, str]] = Counter()  # by names of the two splits
        self.near: Counter[tuple[str, str]] = Counter()

    def finish(self) -> None:
        rows = self.rows
        if len(rows) < 2:
            return
        self.splits = np.frombuffer(rows.split_numbers, np.uint8)
        self.annotations = np.frombuffer(rows.annotation_hashes, np.uint64)
        self.words = np.frombuffer(rows.word_counts, np.uint32)
        remaining = np.flatnonzero(self.words > 0)
        duplicates = self._exact_duplicates(np.frombuffer(rows.input_hashes, np.uint64), remaining)
        remaining = np.setdiff1d(remaining, duplicates, assume_unique=True)
        duplicates = self._normalized_duplicates(np.frombuffer(rows.normalized_hashes, np.uint64), remaining)
        remaining = np.setdiff1d(remaining, duplicates, assume_unique=True)
        remaining = remaining[(self.words[remaining] >= MIN_WORDS) & (remaining < rows.sketched_rows)]
        for first, second in self._similar_pairs(remaining):
            if self._in_two_splits(first, second):
                self._add_leak("near-leak", first, second, "nearly the same")
            else:
                self._add_duplicate("near-duplicate", first, second, "nearly the same")

    def overlaps(self) -> tuple[Overlap, ...]:
        """The number of common rows of every two splits."""
        sizes = Counter(self.splits.tolist()) if len(self.rows) > 1 else Counter[int]()
        names = list(self.rows.splits)
        return tuple(
            Overlap(first, second, self.exact[first, second], self.near[first, second], sizes[number])
            for number, second in enumerate(names)
            for first in names[:number]
        )

    def _exact_duplicates(self, hashes: Hashes, among: RowNumbers) -> RowNumbers:
        pairs = _repeated(hashes, among)
        for first, second in pairs:
            if self._in_two_splits(first, second):
                self._add_leak("leak", first, second, "the same")
            elif self.annotations[first] == self.annotations[second]:
                self._add_duplicate("duplicate", first, second, "the same")
            elif self.task != "translate":
                self._add_conflict(first, second, "the same text")
        return np.array([second for _, second in pairs], np.int64)

    def _normalized_duplicates(self, hashes: Hashes, among: RowNumbers) -> RowNumbers:
        pairs = _repeated(hashes, among)
        difference = "except for case and punctuation"
        for first, second in pairs:
            same_annotation = self.annotations[first] == self.annotations[second]
            if self._in_two_splits(first, second):
                self._add_leak("near-leak", first, second, f"the same, {difference},")
            elif self.task in ("translate", "tag") or same_annotation or self.words[second] < SHORT:
                self._add_duplicate("near-duplicate", first, second, f"the same, {difference},")
            else:
                self._add_conflict(first, second, f"the same text, {difference},")
        return np.array([second for _, second in pairs], np.int64)

    def _similar_pairs(self, among: RowNumbers) -> list[tuple[int, int]]:
        """Pairs of similar rows. If many texts follow a template, only very similar ones count."""
        sketches = self.rows.sketches()
        pairs = similar_pairs(sketches, among, min_similarity=MIN_SIMILARITY)
        within_split = sum(self.splits[first] == self.splits[second] for first, second in pairs)
        if within_split >= 3 and within_split > 0.1 * len(among):
            return similar_pairs(sketches, among, min_similarity=MIN_SIMILARITY_OF_TEMPLATES)
        return pairs

    def _in_two_splits(self, first: int, second: int) -> bool:
        return bool(self.splits[first] != self.splits[second])

    def _add_duplicate(self, kind: str, first: int, second: int, relation: str) -> None:
        message = f"the row is {relation} as {self._describe(first, second)}"
        self._add(kind, second, message, "warning" if kind == "duplicate" else "note")

    def _add_conflict(self, first: int, second: int, relation: str) -> None:
        message = f"{relation} as {self._describe(first, second)}, but with another label"
        self._add("label-conflict", second, message, "error")

    def _add_leak(self, kind: str, first: int, second: int, relation: str) -> None:
        first_split = self.rows.split(first)
        second_split = self.rows.split(second)
        counts = self.exact if kind == "leak" else self.near
        counts[first_split, second_split] += 1
        message = f"the row of {second_split} is {relation} as {self._describe(first, second)} ({first_split})"
        self._add(kind, second, message, "error" if kind == "leak" else "warning")

    def _describe(self, first: int, second: int) -> str:
        """The place of the earlier row, with its file if that is another one."""
        first_place = self.rows.place(first)
        place = describe_place(first_place)
        if first_place.file == self.rows.place(second).file:
            return place
        return f"{place} of {Path(first_place.file).name}"

    def _add(self, kind: str, number: int, message: str, severity: str) -> None:
        if self.words[number] < SHORT:
            severity = "note"
        text = self.rows.text(number)
        split = self.rows.split(number)
        self.collector.add(kind, self.rows.place(number), message, text=text, split=split, severity=severity)


def _repeated(keys: Hashes, among: RowNumbers) -> list[tuple[int, int]]:
    """(first, later) for every row whose key occurred before, in the order of the later rows."""
    order = among[np.argsort(keys[among], kind="stable")]
    values = keys[order]
    same = np.flatnonzero(values[1:] == values[:-1]) + 1
    firsts = order[np.searchsorted(values, values[same])] if len(same) else same
    later = order[same]
    by_later = np.argsort(later)
    return list(zip(firsts[by_later].tolist(), later[by_later].tolist(), strict=True))
