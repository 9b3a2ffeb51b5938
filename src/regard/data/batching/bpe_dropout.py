"""Training sequences that are tokenized again in each epoch, with BPE dropout (`regard.text.bpe_dropout`).

Words are the unit: the distinct words of the data are segmented a few times in each epoch, and every occurrence of a
word takes one of these segmentations at random. So the cost of an epoch depends on the number of distinct words, and
the next epoch is prepared in a thread while the network trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from regard.data.batching.examples import Examples
from regard.text.bpe_dropout import CONTINUES, BpeMerges
from regard.text.flat_tokens import Ints, ranges
from regard.text.tokenizer import Tokenizer

VARIANTS = 32  # segmentations of a word in an epoch; fewer if it occurs less often
BLOCK = 8192  # words that are merged at once


class Rows(NamedTuple):
    """Flat ids and the bounds of each row."""

    ids: Ints
    bounds: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Rows:
        lengths = np.array([len(row) for row in rows], np.int64)
        flat = np.fromiter((number for row in rows for number in row), np.int64, int(lengths.sum()))
        return cls(flat, _bounds(lengths))

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    def split(self) -> list[Ints]:
        return np.split(self.ids, self.bounds[1:-1])

    def take(self, rows: Ints) -> Rows:
        lengths = self.lengths[rows]
        return Rows(self.ids[ranges(self.bounds[rows], lengths)], _bounds(lengths))


@dataclass(frozen=True, eq=False)
class SampledWords:
    """Sequences as words, and the segmentation of each word by BPE and into characters."""

    merges: BpeMerges
    words: Rows  # tokens of each distinct word, without dropout
    characters: Rows  # its characters; its tokens if it cannot be segmented in another way
    occurrences: Ints  # the distinct word at each position
    bounds: Ints  # of the sequences in `occurrences`
    copies: Ints  # segmentations of each distinct word in an epoch

    @classmethod
    def of(cls, ids: Ints, bounds: Ints, merges: BpeMerges) -> SampledWords:
        """From flat ids, in which `CONTINUES` marks tokens that continue a word, and the bounds of the sequences."""
        starts = np.union1d(np.flatnonzero(ids < CONTINUES), bounds[:-1])
        plain = ids % CONTINUES
        numbers: dict[tuple[int, ...], int] = {}
        words = [tuple(word.tolist()) for word in np.split(plain, starts[1:])]
        occurrences = np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
        distinct = list(numbers)
        spelled = [merges.characters(word) for word in distinct]
        characters = Rows.of([word if split is None else split for word, split in zip(distinct, spelled, strict=True)])
        whole = Rows.of(distinct)
        again = segment(characters, np.arange(len(distinct)), merges, 0.0, np.random.default_rng(0))
        usable = [np.array_equal(one, other) for one, other in zip(again.split(), whole.split(), strict=True)]
        copies = np.where(usable, np.minimum(np.bincount(occurrences), VARIANTS), 0)
        return cls(merges, whole, characters, occurrences, np.searchsorted(starts, bounds), copies)

    def sample(self, dropout: float, generator: np.random.Generator) -> tuple[Rows, Ints]:
        """Segmentations of the words, and the one that each occurrence takes. The last are those without dropout."""
        owners = np.repeat(np.arange(len(self.copies)), self.copies)
        sampled = segment(self.characters, owners, self.merges, dropout, generator)
        pool = Rows(
            np.concatenate((sampled.ids, self.words.ids)),
            np.concatenate((sampled.bounds, sampled.bounds[-1] + self.words.bounds[1:])),
        )
        copies = self.copies[self.occurrences]
        random = (generator.random(len(copies)) * copies).astype(np.int64)
        first = (np.cumsum(self.copies) - self.copies)[self.occurrences]
        return pool, np.where(copies > 0, first + random, len(owners) + self.occurrences)

    def lengths(self, pool: Rows, chosen: Ints) -> Ints:
        """Tokens of each sequence."""
        return np.diff(_bounds(pool.lengths[chosen])[self.bounds])

    def without_dropout(self, pool: Rows, chosen: Ints, rows: Ints) -> Ints:
        """The same choice, but without dropout in these sequences."""
        plain = np.repeat(rows, np.diff(self.bounds))
        return np.where(plain, len(pool.lengths) - len(self.copies) + self.occurrences, chosen)

    def build(self, pool: Rows, chosen: Ints) -> Rows:
        """The sequences."""
        joined = pool.take(chosen)
        return Rows(joined.ids, joined.bounds[self.bounds])


def segment(characters: Rows, words: Ints, merges: BpeMerges, dropout: float, generator: np.random.Generator) -> Rows:
    """The tokens of these words, longest words last merged: words of similar length share a block."""
    lengths = characters.lengths[words]
    order = np.argsort(lengths, kind="stable")
    parts, sizes = [np.empty(0, np.int64)], np.zeros(len(words), np.int64)
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        columns = np.arange(int(lengths[block[-1]]) + 1)
        place = np.minimum(characters.bounds[words[block], None] + columns, len(characters.ids) - 1)
        ids_WS = np.where(columns < lengths[block, None], characters.ids[place], merges.padding)
        merges.merge(ids_WS, dropout, generator)
        there = ids_WS != merges.padding
        sizes[block] = there.sum(1)
        parts.append(ids_WS[there])
    by_length = Rows(np.concatenate(parts), _bounds(sizes[order]))
    return by_length.take(np.argsort(order, kind="stable"))


class BpeDropoutSource:
    """The sequences of each epoch: a pure function of the seed and the number of the epoch.

    No sequence becomes longer than the longest one without dropout: those that would be are tokenized without it.
    """

    def __init__(self, marked: Examples, tokenizer: Tokenizer, *, dropout: float, seed: int) -> None:
        assert not marked.by_token, "targets of single tokens would not fit other tokens"
        self.dropout, self.seed = dropout, seed
        self.examples = _unmarked(marked)
        self.max_tokens = int(self.examples.lengths.max())
        self._words = SampledWords.of(marked.ids.astype(np.int64), marked.bounds, BpeMerges.of(tokenizer))
        self._targets: SampledWords | None = None
        if marked.target is not None:
            merges = self._words.merges if tokenizer.target is None else BpeMerges.of(tokenizer.target)
            self._targets = SampledWords.of(marked.target.ids.astype(np.int64), marked.target.bounds, merges)
        self._thread = ThreadPoolExecutor(1, "bpe-dropout")
        self._epochs: dict[int, Future[Examples]] = {}

    def epoch(self, number: int) -> Examples:
        self._epochs = {one: epoch for one, epoch in self._epochs.items() if number <= one <= number + 1}
        for one in (number, number + 1):
            if one not in self._epochs:
                self._epochs[one] = self._thread.submit(self._sample, one)
        return self._epochs[number].result()

    def _sample(self, number: int) -> Examples:
        generator = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        sides = [side for side in (self._words, self._targets) if side is not None]
        bases = [one for one in (self.examples, self.examples.target) if one is not None]
        sampled = [side.sample(self.dropout, generator) for side in sides]
        lengths = [side.lengths(*one) for side, one in zip(sides, sampled, strict=True)]
        too_long = np.logical_or.reduce(
            [own > base.max_length for own, base in zip(lengths, bases, strict=True)]
            + [np.sum(lengths, 0) > self.max_tokens]
        )
        rows = [
            side.build(pool, side.without_dropout(pool, chosen, too_long))
            for side, (pool, chosen) in zip(sides, sampled, strict=True)
        ]
        source = replace(self.examples, ids=rows[0].ids.astype(np.int32), bounds=rows[0].bounds)
        if self.examples.target is None:
            return source
        return replace(source, target=_shifted(self.examples.target, rows[1]))


def _shifted(target: Examples, inputs: Rows) -> Examples:
    """The decoder's inputs with their targets: each token's target is the next one; the last keeps its own."""
    words = np.empty(len(inputs.ids), np.int64)
    words[:-1] = inputs.ids[1:]
    words[inputs.bounds[1:] - 1] = target.by_token["word"][target.bounds[1:] - 1]
    return replace(target, ids=inputs.ids.astype(np.int32), bounds=inputs.bounds, by_token={"word": words})


def _unmarked(examples: Examples) -> Examples:
    by_token = {name: np.where(values >= 0, values % CONTINUES, values) for name, values in examples.by_token.items()}
    target = None if examples.target is None else _unmarked(examples.target)
    return replace(examples, ids=(examples.ids % CONTINUES).astype(np.int32), by_token=by_token, target=target)


def _bounds(lengths: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
