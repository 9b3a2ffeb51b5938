"""The tokens of many texts in flat arrays, one text after the other, and index arrays for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenated ranges: `lengths[i]` numbers from `starts[i]` on."""
    ends = np.cumsum(lengths)
    assigned: Ints = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return assigned


def bounds_of(lengths: Ints | list[int]) -> Ints:
    """Where each run of these lengths starts, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


class FlatTokens(NamedTuple):
    """The tokens of many texts: those of text `i` are `ids[bounds[i] : bounds[i + 1]]`.

    offsets: (tokens, 2) start and end (exclusive) of each token in its text, in code points.
    """

    ids: npt.NDArray[np.int32]
    bounds: Ints
    offsets: Places

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    def take(self, texts: Ints) -> FlatTokens:
        """The tokens of these texts, in this order."""
        lengths = self.lengths[texts]
        flat = ranges(self.bounds[texts], lengths)
        return FlatTokens(self.ids[flat], bounds_of(lengths), self.offsets[flat] if len(self.offsets) else self.offsets)


def join_tokens(parts: Sequence[FlatTokens]) -> FlatTokens:
    """The tokens of all texts of the parts, one part after the other."""
    return FlatTokens(
        np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]),
        bounds_of(np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])),
        np.concatenate([np.zeros((0, 2), np.int32), *(part.offsets for part in parts)]),
    )


def flat_encodings(encodings: Iterable[Any], *, offsets: bool) -> FlatTokens:
    """Encodings of the `tokenizers` library as flat arrays; their offsets are slow, so only on request."""
    encodings = list(encodings)
    lists = [encoding.ids for encoding in encodings]
    bounds = bounds_of([len(ids) for ids in lists])
    count = int(bounds[-1])
    ids = np.fromiter(chain.from_iterable(lists), np.int32, count)
    if not offsets:
        return FlatTokens(ids, bounds, np.zeros((0, 2), np.int32))
    pairs = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
    return FlatTokens(ids, bounds, np.fromiter(pairs, np.int32, 2 * count).reshape(-1, 2))
