"""BPE dropout: the same word is split into other tokens each time it is read.

In plain terms, it works as follows:
1. A word is split into characters (of byte-level BPE: bytes).
2. At each step, every possible merge is dropped with a fixed probability, and the first of the others, in the order in
   which they were learned, is applied. The word is done when no merge is left.
3. With probability 0 this is plain BPE. Otherwise, a word has several segmentations, so a model also learns what the
   parts of its frequent words mean.

Provilkov et al., "BPE-dropout: simple and effective subword regularization", 2020 (https://arxiv.org/abs/1910.13267).
The `tokenizers` library has the same method with random numbers that cannot be seeded. Here many words are merged at
once with numpy, from a seeded generator, so that a resumed training reads the same tokens.

Shapes: W words, S symbols of the longest word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError, setting
from regard.text.tokenizer import Tokenizer

CONTINUES = 1 << 30  # added to the id of a token that continues the word of the token before it
NO_MERGE = np.iinfo(np.int32).max
Ints = npt.NDArray[np.int64]


class MarkingTokenizer(Tokenizer):
    """A tokenizer whose `ids_batch` adds `CONTINUES` to each token that continues a word."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> MarkingTokenizer:
        target = None if tokenizer.target is None else cls.of(tokenizer.target)
        return cls(tokenizer.backend, tokens=tokenizer._tokens, settings=tokenizer.settings, target=target)

    def ids_batch(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, special: bool = True
    ) -> list[list[int]]:
        return [
            _marked(encoding.ids, encoding.word_ids)
            for encoding in self._batch(self.backend.encode_batch, texts, pairs, special)
        ]


def _marked(ids: Sequence[int], words: Sequence[int | None]) -> list[int]:
    before = [None, *words]
    return [
        number + CONTINUES if word is not None and word == previous else number
        for number, word, previous in zip(ids, words, before, strict=False)
    ]


@dataclass(frozen=True, eq=False)
class BpeMerges:
    """The merges of a BPE vocabulary as sorted arrays."""

    names: tuple[str, ...]  # of the tokens, by id
    keys: Ints  # pairs of ids as one number, sorted
    ranks: npt.NDArray[np.int32]  # of the pairs: the order in which they were learned
    merged: Ints  # id of the merged token, by rank

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> BpeMerges:
        """The merges of a tokenizer. Raises InputError if its vocabulary is not BPE."""
        if tokenizer.kind != "bpe":
            raise InputError(
                f"{setting('bpe_dropout')} needs a BPE vocabulary, but this one is {tokenizer.kind}. Learn one with "
                "regard tokenizer FILE --kind bpe --special-tokens t5 --out DIR and give it with "
                f"{setting('tokenizer')}, or leave {setting('bpe_dropout')} out."
            )
        model = json.loads(tokenizer.to_json())["model"]
        vocabulary: dict[str, int] = model["vocab"]
        names = [""] * (max(vocabulary.values()) + 1)
        for name, number in vocabulary.items():
            names[number] = name
        pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        left_right = np.array([[vocabulary[left], vocabulary[right]] for left, right in pairs], np.int64).reshape(-1, 2)
        keys = left_right[:, 0] * (len(names) + 1) + left_right[:, 1]
        order = np.argsort(keys, kind="stable")
        merged = np.array([vocabulary[left + right] for left, right in pairs], np.int64)
        return cls(tuple(names), keys[order], order.astype(np.int32), merged)

    @property
    def padding(self) -> int:
        """An id after all others, which is in no merge."""
        return len(self.names)

    def rank(self, left: Ints, right: Ints) -> npt.NDArray[np.int32]:
        """The rank of the merge of each pair of ids; `NO_MERGE` if there is none."""
        if not len(self.keys):
            return np.full(left.shape, NO_MERGE, np.int32)
        keys = left * (self.padding + 1) + right
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.ranks[place], NO_MERGE)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The ids of the tokens of one character."""
        return {name: number for number, name in enumerate(self.names) if len(name) == 1}

    def characters(self, word: Sequence[int]) -> list[int] | None:
        """The ids of the characters of a word; None if one of them is not in the vocabulary."""
        try:
            return [self.numbers[character] for number in word for character in self.names[number]]
        except (KeyError, IndexError):
            return None

    def merge(self, ids_WS: Ints, dropout: float, generator: Any) -> None:
        """Merge the symbols of every word, in place. The last column is padding."""
        ranks_WS = self.rank(ids_WS[:, :-1], ids_WS[:, 1:])
        ranks_WS = np.pad(ranks_WS, ((0, 0), (0, 1)), constant_values=NO_MERGE)
        columns = np.arange(ids_WS.shape[1])
        active = np.arange(len(ids_WS))
        while len(active):
            candidates = ranks_WS[active]
            if dropout:
                candidates[generator.random(candidates.shape, dtype=np.float32) < dropout] = NO_MERGE
            at = candidates.argmin(1)
            best = candidates[np.arange(len(active)), at]
            going = best < NO_MERGE
            active, at, best = active[going], at[going], best[going]
            shifted = np.minimum(columns + (columns > at[:, None]), columns[-1])
            ids, ranks = (np.take_along_axis(values[active], shifted, 1) for values in (ids_WS, ranks_WS))
            rows = np.arange(len(active))
            ids[rows, at] = self.merged[best]
            ranks[rows, at] = self.rank(ids[rows, at], ids[rows, np.minimum(at + 1, columns[-1])])
            before = np.maximum(at - 1, 0)
            ranks[rows, before] = np.where(at > 0, self.rank(ids[rows, before], ids[rows, at]), ranks[rows, before])
            ids_WS[active], ranks_WS[active] = ids, ranks
