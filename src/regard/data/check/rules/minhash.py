"""MinHash: find similar texts without comparing all pairs.

In plain terms, it works as follows:
1. The features of a text are its words and its pairs of neighboring words.
2. Each of 64 hash functions is applied to all features. One byte of the smallest hash is stored: a sketch of 64 bytes.
3. The fraction of equal bytes of two sketches estimates the fraction of features that the texts have in common
   (Jaccard similarity).
4. Only texts that agree in four consecutive bytes (one of 16 bands) are compared.

Broder, "On the resemblance and containment of documents", 1997; one byte per hash: Li and König, "b-bit minwise
hashing", 2010.
"""

from __future__ import annotations

import functools
import re
from zlib import crc32

import numpy as np
import numpy.typing as npt

BYTES = 64
WORDS_AT_ONCE = 1 << 18
MAX_CHARACTERS = 50_000  # of a text that are used
WORD = re.compile(r"\w+")
MAX_WORD_LENGTH = 15  # mean letters per word; above it the text is in a script without spaces
Hashes = npt.NDArray[np.uint32]


@functools.cache
def _hash_parameters() -> list[tuple[np.uint32, np.uint32]]:
    """Factor and summand of each hash function, the same in every process."""
    bits = (np.random.Philox(key=1997).random_raw(2 * BYTES) >> np.uint64(32)).astype(np.uint32)
    return list(zip(bits[:BYTES] | np.uint32(1), bits[BYTES:], strict=True))


def words_of(text: str) -> tuple[list[str], bool]:
    """The words in lowercase without punctuation, and True if they are those of the whole text.

    In scripts without spaces, letters are used instead of words.
    """
    words: list[str] = WORD.findall(text[:MAX_CHARACTERS].casefold())
    if len(text) > 20 and sum(map(len, words)) > MAX_WORD_LENGTH * len(words):
        words = [letter for word in words for letter in word]
    return words, len(text) <= MAX_CHARACTERS


class Sketcher:
    """Computes the sketches of texts, many at once."""

    def __init__(self) -> None:
        self.sketches = bytearray()
        self.hashes: list[int] = []
        self.counts: list[int] = []
        self.salts: list[int] = []

    def add(self, words: list[str], salt: int) -> None:
        """Add a text as its words. Texts with different salts are never similar."""
        self.hashes += [crc32(word.encode("utf-8", "replace")) for word in words] or [0]
        self.counts.append(len(words) or 1)
        self.salts.append(salt)
        if len(self.hashes) >= WORDS_AT_ONCE:
            self._flush()

    def finish(self) -> bytearray:
        self._flush()
        return self.sketches

    def _flush(self) -> None:
        if not self.counts:
            return
        counts = np.array(self.counts)
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        words = np.array(self.hashes, np.uint32) ^ np.repeat(np.array(self.salts, np.uint32), counts)
        previous = np.roll(words, 1)
        previous[starts] = 0x9E3779B9
        features = np.stack((mix_bits(words), mix_bits(words * np.uint32(31) + mix_bits(previous))), 1).reshape(-1)
        sketches = np.empty((len(counts), BYTES), np.uint8)
        for index, (factor, summand) in enumerate(_hash_parameters()):
            minimum = np.minimum.reduceat(features * factor + summand, 2 * starts)
            sketches[:, index] = mix_bits(minimum) >> np.uint32(24)
        self.sketches += sketches.tobytes()
        self.hashes, self.counts, self.salts = [], [], []


def mix_bits(values: Hashes) -> Hashes:
    """Hashes in which every bit depends on all bits of the value (the last step of MurmurHash3)."""
    values = (values ^ (values >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    values = (values ^ (values >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


def similar_pairs(
    sketches: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64], *, min_similarity: float
) -> list[tuple[int, int]]:
    """Pairs (earlier, later) of rows whose sketches agree in at least this fraction; each later row at most once.

    Of the rows that agree in a band, each is compared with the first one and with the previous one, so that the time
    is that of sorting.
    """
    bands = sketches[rows].view(np.uint32)
    matches = np.full(len(rows), -1)
    for band in range(bands.shape[1]):
        order = np.argsort(bands[:, band], kind="stable")
        values = bands[order, band]
        same = np.flatnonzero(values[1:] == values[:-1]) + 1
        if not len(same):
            continue
        firsts = np.searchsorted(values, values[same])
        for earlier in (order[firsts], order[same - 1]):
            later = order[same]
            for start in range(0, len(later), 1 << 16):
                a = earlier[start : start + (1 << 16)]
                b = later[start : start + (1 << 16)]
                is_similar = (sketches[rows[a]] == sketches[rows[b]]).mean(1) >= min_similarity
                is_new = is_similar & (matches[b] < 0)
                matches[b[is_new]] = a[is_new]
    return [(int(rows[matches[index]]), int(rows[index])) for index in np.flatnonzero(matches >= 0)]
