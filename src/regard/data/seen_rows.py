"""Whether rows were among the training rows of a model, from a sample of their hashes in the model's folder.

The folder has the smallest hashes of the distinct training rows (a bottom-k sketch, Broder 1997). Rows of other data
are looked up if their hashes are in this range, which is the same fraction of both. So a few hundred hashes estimate
how many rows were seen, also if the data is only a part of the training data. Up to `SIZE` training rows, all of their
hashes are stored, and the number is exact. A hash is of the input texts, not of the labels.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.records import Record

SIZE = 256  # hashes
HASH = re.compile(r"\b[0-9a-f]{16}\b")
FEW = 0.02  # fraction of seen rows below which there is no warning: most data has some equal rows
MIN_LOOKED_UP = 4  # rows, below which the fraction is not estimated


def hash_sample(records: Sequence[Record]) -> str:
    """The smallest hashes of these rows, separated by spaces."""
    numbers = np.fromiter((zlib.crc32(_input(record)) for record in records), np.uint32, len(records))
    distinct, rows = np.unique(numbers, return_index=True)
    smallest = zip(distinct[:SIZE].tolist(), rows[:SIZE].tolist(), strict=True)
    return " ".join(_hash(number, _input(records[row])) for number, row in smallest)


@dataclass
class SeenRows:
    """Counts rows that a model was trained on; `sample` is what `hash_sample` returned for its training rows."""

    sample: str
    rows: int = 0
    looked_up: int = 0
    seen: int = 0

    def __post_init__(self) -> None:
        self._hashes = set(HASH.findall(self.sample))
        self._is_complete = len(self._hashes) < SIZE
        self._last = 1 << 32 if self._is_complete else max(int(known[:8], 16) for known in self._hashes)

    def add(self, record: Record) -> None:
        """Count a row."""
        text = _input(record)
        number = zlib.crc32(text)
        self.rows += 1
        if number <= self._last:
            self.looked_up += 1
            self.seen += _hash(number, text) in self._hashes

    @property
    def fraction(self) -> float:
        """Of the rows that were seen in training; 0.0 if too few rows could be looked up."""
        enough = self.looked_up >= MIN_LOOKED_UP or (self._is_complete and self.looked_up)
        return self.seen / self.looked_up if enough else 0.0

    @property
    def words(self) -> str | None:
        """How many rows were seen, such as "about 40 % of the 2,000 rows"; None if they are few."""
        if self.seen == 0 or self.fraction < FEW:
            return None
        if self._is_complete or self.seen == self.rows:
            return f"{self.seen:,} of {self.rows:,} rows"
        if self.seen == self.looked_up:
            return f"nearly all of the {self.rows:,} rows"
        return f"about {self.fraction:.0%} of the {self.rows:,} rows".replace("%", " %")


def _input(record: Record) -> bytes:
    """The texts in any order, since the order of a pair is often exchanged."""
    return "\x1f".join(sorted(record.input_texts)).encode("utf-8", "surrogatepass")


def _hash(number: int, text: bytes) -> str:
    """The quick hash, by which hashes are ordered, and a part of another one."""
    return f"{number:08x}{hashlib.blake2b(text, digest_size=4).hexdigest()}"
