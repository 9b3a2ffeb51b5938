"""Sequences of many records at once: special tokens and windows of texts, copied out of one pool of tokens.

Every sequence has the same number of parts, such as `[CLS] question [SEP] context [SEP]`, and each part is a run of the
pool. So all sequences are one gather: no Python object per sequence or token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.data.batching.examples import Examples
from regard.data.batching.framing import SpecialTokens
from regard.data.batching.windows import Window
from regard.data.corpus.masking import IGNORE
from regard.text.flat_tokens import FlatTokens, Ints, bounds_of, ranges


class Cuts(NamedTuple):
    """Windows of texts, as arrays with an entry for each: see `Window`."""

    row: Ints
    start: Ints
    end: Ints
    own_start: Ints
    own_end: Ints

    @property
    def lengths(self) -> Ints:
        return self.end - self.start


def cut_rows(lengths: Ints, long: Ints, windows_of: Callable[[int], Iterable[Window]]) -> Cuts:
    """One window for the whole text of each row; for the rows in `long` those of `windows_of`."""
    rows = np.arange(len(lengths))
    zeros = np.zeros(len(lengths), np.int64)
    whole = Cuts(rows, zeros, lengths, zeros, lengths)
    if not len(long):
        return whole
    several = [(row, one) for row in long.tolist() for one in windows_of(row)]
    parts = np.array([(row, one.start, one.end, one.own_start, one.own_end) for row, one in several], np.int64)
    short = np.ones(len(lengths), np.bool_)
    short[long] = False
    merged = [np.concatenate((column[short], part)) for column, part in zip(whole, parts.T, strict=True)]
    order = np.argsort(merged[0], kind="stable")
    return Cuts(*(column[order] for column in merged))


@dataclass(frozen=True, eq=False)
class SequencePart:
    """A part of every sequence: run `starts[i]`, `lengths[i]` of the tokens `ids`, and their segment."""

    ids: npt.NDArray[np.int32]
    starts: Ints
    lengths: Ints
    segment: int | npt.NDArray[np.uint8] = 0  # one for all tokens, or one for each of `ids`

    @classmethod
    def special(cls, tokens: SpecialTokens, count: int) -> SequencePart:
        """The same special tokens in all sequences."""
        ids = np.array(tokens.ids, np.int32)
        lengths = np.full(count, len(ids), np.int64)
        return cls(ids, np.zeros(count, np.int64), lengths, np.array(tokens.segments, np.uint8))

    @classmethod
    def text(cls, tokens: FlatTokens, cuts: Cuts, *, segment: int = 0, texts: Ints | None = None) -> SequencePart:
        """Windows of texts: of the text of each row, or of the text with the number that `texts` has for the row."""
        numbers = cuts.row if texts is None else texts[cuts.row]
        return cls(tokens.ids, tokens.bounds[numbers] + cuts.start, cuts.lengths, segment)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of parts, in order."""

    examples: Examples
    positions: tuple[Ints, ...]  # where each part starts in each sequence, counted in all tokens

    def column(self, part: int, values: npt.NDArray[Any], starts: Ints, lengths: Ints, skip: Ints) -> npt.NDArray[Any]:
        """A value for each token: runs of `values` in this part, from its token `skip` on; IGNORE elsewhere."""
        column = np.full(len(self.examples.ids), IGNORE, values.dtype)
        column[ranges(self.positions[part] + skip, lengths)] = values[ranges(starts, lengths)]
        return column

    def build(self, *, by_sequence: Mapping[str, Any], by_token: Mapping[str, Any]) -> Examples:
        return replace(self.examples, by_sequence=by_sequence, by_token=by_token)


def assemble(owners: Ints, parts: Sequence[SequencePart], *, segments: bool) -> Sequences:
    """Sequences of these records, made of the same parts in the same order."""
    lengths = np.stack([part.lengths for part in parts], 1)
    pools = bounds_of([len(part.ids) for part in parts])
    starts = np.stack([part.starts + pool for part, pool in zip(parts, pools[:-1], strict=True)], 1)
    flat = ranges(starts.ravel(), lengths.ravel())
    kinds = None
    if segments:
        every = [np.broadcast_to(np.asarray(part.segment, np.uint8), len(part.ids)) for part in parts]
        kinds = np.concatenate(every)[flat]
    examples = Examples(
        ids=np.concatenate([part.ids for part in parts])[flat],
        bounds=bounds_of(lengths.sum(1)),
        owners=owners,
        segments=kinds,
    )
    firsts = bounds_of(lengths.ravel())[:-1].reshape(lengths.shape)
    return Sequences(examples, tuple(firsts.T))
