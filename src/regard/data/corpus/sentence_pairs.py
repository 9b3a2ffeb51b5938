"""Pairs of text parts for next-sentence and sentence-order prediction, and blocks of tokens for causal models.

Only start and end positions in the flat tokens are sampled. So the lengths of a whole epoch are known before any token
is read, and pairs can be read in any order. An epoch is a pure function of the bounds, the seed and its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.text.flat_tokens import Ints

Kind = Literal["next", "order"]


@dataclass(frozen=True)
class SentencePairs:
    """`first` and `second` hold start and end of each part in the flat tokens.

    Labels as in BERT: 0 where the second part follows the first, 1 where it is from another document ("next") or
    where the two are swapped ("order").
    """

    first: Ints  # (P, 2)
    second: Ints  # (P, 2)
    labels: Ints  # (P,)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Ints:
        """Tokens of each pair with [CLS] and the two [SEP]."""
        result: Ints = (self.first[:, 1] - self.first[:, 0]) + (self.second[:, 1] - self.second[:, 0]) + 3
        return result

    def read(self, row: int, tokens: npt.NDArray[Any], *, cls: int, sep: int) -> tuple[Ints, Ints]:
        """The ids [CLS] A [SEP] B [SEP] and their segments."""
        a, b = (tokens[slice(*part[row])].astype(np.int64) for part in (self.first, self.second))
        ids = np.concatenate(([cls], a, [sep], b, [sep]))
        segments = np.repeat([0, 1], [len(a) + 2, len(b) + 1])
        return ids, segments


def sample_pairs(
    sentences: Ints,
    documents: Ints,
    *,
    max_tokens: int,
    kind: Kind = "next",
    short: float = 0.1,
    seed: int = 0,
    epoch: int = 0,
) -> SentencePairs:
    """Pairs of parts from all documents, each of at most `max_tokens` tokens with [CLS] and [SEP].

    `sentences` are the token bounds of all sentences, `documents` the bounds of each document in sentences. In half of
    the pairs the second part follows the first. The fraction `short` of the pairs gets a random shorter length. A
    document of one sentence is used only as the second part of other pairs. Pairs that are too long are truncated at
    the start of the first part and at the end of the second, the longer part first.
    """
    if max_tokens < 5:
        raise InputError(
            f"pairs of at most {max_tokens} tokens are too short for two parts and 3 special tokens; use at least 5."
        )
    full = np.flatnonzero(np.diff(documents) > 1)
    candidates = np.flatnonzero(np.diff(documents) > 0)
    if kind not in ("next", "order"):
        raise InputError(f'pairs of kind "{kind}" are not known. Choose one of: next, order.')
    if len(full) == 0:
        raise InputError(
            "no document has two sentences, so there are no next-sentence pairs. Blank lines end a document: remove "
            "them between sentences that belong together, or train on masked tokens alone (objective mlm)."
        )
    if kind == "next" and len(candidates) < 2:
        raise InputError(
            "next-sentence pairs need at least two documents, for parts that do not follow. Put a blank line between "
            "documents, or train on masked tokens alone (objective mlm)."
        )
    rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    sampler = _PairSampler(sentences, documents, candidates, capacity=max_tokens - 3, short=short, rng=rng)
    rows = [row for document in full for row in sampler.document(int(document), kind)]
    table = np.array(rows, np.int64)
    return _truncated(table, max_tokens - 3)


class _PairSampler:
    """One pass over the documents. Bounds are lists, whose single numbers are read faster than those of arrays."""

    def __init__(
        self,
        sentences: Ints,
        documents: Ints,
        candidates: Ints,
        *,
        capacity: int,
        short: float,
        rng: np.random.Generator,
    ) -> None:
        self.array, self.bounds, self.documents = sentences, sentences.tolist(), documents.tolist()
        self.candidates, self.capacity, self.short, self.rng = candidates, capacity, short, rng

    def document(self, number: int, kind: Kind) -> list[tuple[int, int, int, int, int]]:
        result = []
        start_sentence, end = self.documents[number], self.documents[number + 1]
        while start_sentence < end - 1:
            target, cut, is_next = self._target(), self.rng.random(), self.rng.random() < 0.5
            stop = min(max(self._sentence_after(start_sentence, target), start_sentence + 2), end)
            middle = start_sentence + 1 + int(cut * (stop - start_sentence - 1))
            a, b = (self.bounds[start_sentence], self.bounds[middle]), (self.bounds[middle], self.bounds[stop])
            if is_next:
                result.append((*a, *b, 0))
            elif kind == "order":
                result.append((*b, *a, 1))
            else:
                result.append((*a, *self._random_part(number, max(target - (a[1] - a[0]), 1)), 1))
                stop = middle  # the unused second part starts the next pair
            start_sentence = stop
        return result

    def _target(self) -> int:
        if self.rng.random() < self.short:
            return int(self.rng.integers(2, self.capacity + 1))
        return self.capacity

    def _sentence_after(self, sentence: int, tokens: int) -> int:
        """The first sentence bound at least `tokens` after a sentence."""
        return int(np.searchsorted(self.array, self.bounds[sentence] + tokens))

    def _random_part(self, number: int, tokens: int) -> tuple[int, int]:
        """A part of another document, sampled uniformly."""
        own_index = int(np.searchsorted(self.candidates, number))
        index = int(self.rng.integers(len(self.candidates) - 1))
        other_document = int(self.candidates[index + (index >= own_index)])
        start = int(self.rng.integers(self.documents[other_document], self.documents[other_document + 1]))
        stop = min(max(self._sentence_after(start, tokens), start + 1), self.documents[other_document + 1])
        return self.bounds[start], self.bounds[stop]


def _truncated(table: Ints, capacity: int) -> SentencePairs:
    """Pairs truncated to `capacity` tokens: the longer part first, to the length of the other, then both."""
    first, second, labels = table[:, 0:2].copy(), table[:, 2:4].copy(), table[:, 4]
    a, b = first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]
    half = capacity // 2
    keep_a = np.where(a + b <= capacity, a, np.where(b <= half, capacity - b, np.minimum(a, capacity - half)))
    keep_b = np.minimum(b, capacity - keep_a)
    first[:, 0] = first[:, 1] - keep_a
    second[:, 1] = second[:, 0] + keep_b
    return SentencePairs(first, second, labels)


def token_blocks(bounds: Ints, length: int, *, across: bool = True, seed: int = 0, epoch: int = 0) -> Ints:
    """(K, 2) start and end of contiguous blocks of `length` tokens that together contain every token once.

    With `across`, blocks cross document bounds: all but the first and the last are full, and the cuts differ from epoch
    to epoch. Otherwise each document is cut separately, and its last block has the remaining tokens.
    """
    if length < 1:
        raise InputError(f"blocks of {length} tokens were requested; expected at least 1.")
    total = int(bounds[-1])
    if across:
        shift = int(np.random.Generator(np.random.Philox(key=[seed, epoch])).integers(length)) if epoch else 0
        cuts = np.unique(np.concatenate(([0], np.arange(shift, total, length), [total])))
        return np.stack((cuts[:-1], cuts[1:]), 1)
    sizes = np.diff(bounds)
    counts = -(-sizes // length)
    owner = np.repeat(np.arange(len(sizes)), counts)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = bounds[owner] + step * length
    return np.stack((starts, np.minimum(starts + length, bounds[owner + 1])), 1)
