"""Sketches of texts: 64 bytes of which as many agree as the texts have words and neighbours in common (MinHash).

Broder, "On the resemblance and containment of documents", 1997; one byte of each minimum is kept (Li and König, 2010).
"""

from __future__ import annotations

import functools
import re
from zlib import crc32

import numpy as np
import numpy.typing as npt

BYTES = 64
FLUSH = 1 << 18  # words sketched at once
READ = 50_000  # characters of a text that are looked at
WORD = re.compile(r"\w+")
WIDE = 15  # letters a word, from which on a text has no spaces between its words
Hashes = npt.NDArray[np.uint32]


@functools.cache
def _factors() -> list[tuple[np.uint32, np.uint32]]:
    """What each hash function multiplies by and adds: the same in every run."""
    bits = (np.random.Philox(key=1997).random_raw(2 * BYTES) >> np.uint64(32)).astype(np.uint32)
    return list(zip(bits[:BYTES] | np.uint32(1), bits[BYTES:], strict=True))


def words_of(text: str) -> tuple[list[str], bool]:
    """Words without case and signs, and whether they are of the whole text; letters where no spaces part words."""
    words: list[str] = WORD.findall(text[:READ].casefold())
    if len(text) > 20 and sum(map(len, words)) > WIDE * len(words):
        words = [letter for word in words for letter in word]
    return words, len(text) <= READ


class Sketcher:
    """Sketches of texts in order, many at once."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.hashes: list[int] = []
        self.counts: list[int] = []
        self.salts: list[int] = []

    def add(self, words: list[str], salt: int) -> None:
        """A text by its words. Texts with different salts are never alike."""
        self.hashes += [crc32(word.encode("utf-8", "replace")) for word in words] or [0]
        self.counts.append(len(words) or 1)
        self.salts.append(salt)
        if len(self.hashes) >= FLUSH:
            self._flush()

    def done(self) -> bytearray:
        self._flush()
        return self.kept

    def _flush(self) -> None:
        if not self.counts:
            return
        counts = np.array(self.counts)
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        words = np.array(self.hashes, np.uint32) ^ np.repeat(np.array(self.salts, np.uint32), counts)
        before = np.roll(words, 1)
        before[starts] = 0x9E3779B9
        features = np.stack((mixed(words), mixed(words * np.uint32(31) + mixed(before))), 1).reshape(-1)
        found = np.empty((len(counts), BYTES), np.uint8)
        for place, (times, plus) in enumerate(_factors()):
            least = np.minimum.reduceat(features * times + plus, 2 * starts)
            found[:, place] = mixed(least) >> np.uint32(24)
        self.kept += found.tobytes()
        self.hashes, self.counts, self.salts = [], [], []


def mixed(values: Hashes) -> Hashes:
    """Every bit depends on every other (the end of MurmurHash3)."""
    values = (values ^ (values >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    values = (values ^ (values >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


def near(sketches: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64], *, least: float) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of those rows whose sketches agree in that share; each later row once.

    Rows that share four bytes in one of sixteen places are compared with the first of them and with the one before, so
    that the time is that of sorting.
    """
    bands = sketches[rows].view(np.uint32)
    best = np.full(len(rows), -1)
    for band in range(bands.shape[1]):
        order = np.argsort(bands[:, band], kind="stable")
        values = bands[order, band]
        same = np.flatnonzero(values[1:] == values[:-1]) + 1
        if not len(same):
            continue
        heads = np.searchsorted(values, values[same])
        for earlier in (order[heads], order[same - 1]):
            later = order[same]
            for start in range(0, len(later), 1 << 16):
                one, two = earlier[start : start + (1 << 16)], later[start : start + (1 << 16)]
                agree = (sketches[rows[one]] == sketches[rows[two]]).mean(1) >= least
                fresh = agree & (best[two] < 0)
                best[two[fresh]] = one[fresh]
    later = np.flatnonzero(best >= 0)
    return [(int(rows[best[place]]), int(rows[place])) for place in later]
