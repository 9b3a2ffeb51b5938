"""The same thing twice: in one split, with two labels, or on both sides of a split."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.data.check.collect import FindingCollector
from regard.data.check.finding import Overlap, where
from regard.data.check.row_store import RowStore
from regard.data.check.rules.minhash import near

FEW = 4  # words: texts so short are often there twice by right
ENOUGH = 8  # words that a text needs to be nearly the same as another
LEAST = 0.66  # of words and neighbours in common
PATTERNED = 0.9  # where texts are written to a pattern
Numbers = npt.NDArray[np.int64]


class DuplicateRule:
    """Looks at all rows when all have been seen."""

    def __init__(self, gather: FindingCollector, rows: RowStore, *, task: str | None) -> None:
        self.gather, self.rows, self.task = gather, rows, task
        self.exact: Counter[tuple[str, str]] = Counter()
        self.near: Counter[tuple[str, str]] = Counter()

    def finish(self) -> None:
        rows = self.rows
        if len(rows) < 2:
            return
        self.split = np.frombuffer(rows.split_of, np.uint8)
        self.told, self.words = np.frombuffer(rows.told, np.uint64), np.frombuffer(rows.words, np.uint32)
        said, plain = np.frombuffer(rows.said, np.uint64), np.frombuffer(rows.plain, np.uint64)
        filled = np.flatnonzero(self.words > 0)
        copies = self._copies(said, filled)
        rest = np.setdiff1d(filled, copies, assume_unique=True)
        changed = self._changed(plain, rest)
        rest = np.setdiff1d(rest, changed, assume_unique=True)
        rest = rest[(self.words[rest] >= ENOUGH) & (rest < len(rows.starts) - 1)]
        for first, second in self._near(rest):
            self._close(first, second)

    def _near(self, rest: Numbers) -> list[tuple[int, int]]:
        """Rows that are nearly alike. Where many of one split are, they are written to a pattern, and only what agrees
        far more than the pattern is the same."""
        sketches = self.rows.sketches()
        found = near(sketches, rest, least=LEAST)
        within = sum(self.split[first] == self.split[second] for first, second in found)
        patterned = within >= 3 and within > 0.1 * len(rest)
        return near(sketches, rest, least=PATTERNED) if patterned else found

    def overlaps(self) -> tuple[Overlap, ...]:
        sizes = Counter(self.split.tolist()) if len(self.rows) > 1 else Counter[int]()
        names = list(self.rows.splits)
        return tuple(
            Overlap(one, two, self.exact[one, two], self.near[one, two], sizes[number])
            for number, two in enumerate(names)
            for one in names[:number]
        )

    def _copies(self, said: npt.NDArray[np.uint64], among: Numbers) -> Numbers:
        """Rows that say exactly what an earlier one says."""
        found = _repeated(said, among)
        for first, second in found:
            if self._leaks(first, second):
                self._leak("leak", first, second, "says what")
            elif self.told[first] == self.told[second]:
                self._twice("duplicate", first, second)
            elif self.task != "translate":
                self._conflict(first, second, "is the text of")
        return np.array([second for _, second in found], np.int64)

    def _changed(self, plain: npt.NDArray[np.uint64], among: Numbers) -> Numbers:
        """Rows that do so but for case, punctuation and spaces."""
        found = _repeated(plain, among)
        for first, second in found:
            if self._leaks(first, second):
                self._leak("near-leak", first, second, "says, but for case and signs, what")
            elif self.task in ("translate", "tag") or self.told[first] == self.told[second] or self.words[second] < FEW:
                self._twice("near-duplicate", first, second, "but for case and signs")
            else:
                self._conflict(first, second, "is, but for case and signs, the text of")
        return np.array([second for _, second in found], np.int64)

    def _close(self, first: int, second: int) -> None:
        if self._leaks(first, second):
            self._leak("near-leak", first, second, "says nearly what")
        else:
            self._twice("near-duplicate", first, second, "nearly")

    def _leaks(self, first: int, second: int) -> bool:
        return bool(self.split[first] != self.split[second])

    def _grave(self, second: int, grave: str) -> str:
        return "note" if self.words[second] < FEW else grave

    def _note(self, kind: str, second: int, what: str, grave: str) -> None:
        place, text = self.rows.place(second), self.rows.text(second)
        split = self.rows.split(second)
        self.gather.add(kind, place, what, text=text, split=split, severity=self._grave(second, grave))

    def _there(self, first: int, second: int) -> str:
        """Where the earlier row is, with its file where that is another."""
        one, two = self.rows.place(first), self.rows.place(second)
        return where(one) if one.file == two.file else f"{where(one)} of {Path(one.file).name}"

    def _twice(self, kind: str, first: int, second: int, how: str = "") -> None:
        what = f"the row is {how + ' ' if how else ''}that of {self._there(first, second)}"
        self._note(kind, second, what, "warning" if kind == "duplicate" else "note")

    def _conflict(self, first: int, second: int, how: str) -> None:
        what = f"the text {how} {self._there(first, second)}, but with another label"
        self._note("label-conflict", second, what, "error")

    def _leak(self, kind: str, first: int, second: int, how: str) -> None:
        one, two = self.rows.split(first), self.rows.split(second)
        (self.exact if kind == "leak" else self.near)[one, two] += 1
        what = f"the row of {two} {how} {self._there(first, second)} ({one}) says"
        self._note(kind, second, what, "error" if kind == "leak" else "warning")


def _repeated(keys: npt.NDArray[np.uint64], among: Numbers) -> list[tuple[int, int]]:
    """(first, later) for every row whose key was there before, in order of the later."""
    order = among[np.argsort(keys[among], kind="stable")]
    values = keys[order]
    same = np.flatnonzero(values[1:] == values[:-1]) + 1
    firsts = order[np.searchsorted(values, values[same])] if len(same) else same
    later = order[same]
    turn = np.argsort(later)
    return list(zip(firsts[turn].tolist(), later[turn].tolist(), strict=True))
