"""The tokens of every distinct word, computed once: many texts are tokenized by looking up their words.

BERT's tokenizers split a text at spaces and punctuation, and the tokens of a word do not depend on the words around it.
Splitting at ASCII spaces and punctuation takes a few passes over the text, so that a large data set is tokenized in a
fraction of the time. The tokens of a new word are those of the tokenizer itself. Texts with added tokens (such as
[MASK]), control characters, other spaces or combining characters are left to it.
"""

from __future__ import annotations

import functools
import os
import string
import threading
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.text.flat_tokens import FlatTokens, Ints, bounds_of, flat_encodings, join_tokens, ranges

MAX_CORES = 4  # with more, the tokenizer itself is as fast, since it uses all of them
CHUNK = 1 << 22  # characters that are split into words at once
MAX_ADDED = 64  # added tokens that are looked for in the texts
MAX_WORDS = 400_000  # distinct words in memory
SPACE, LETTER, PUNCTUATION, OTHER = range(4)
SPLITS = ("L", "N", "P", "S")  # Unicode categories of characters that may be in a word
REPLACEMENT = "\ufffd"  # removed by BERT's normalizer


def cpu_count() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        return os.cpu_count() or 1


class WordCache:
    """The tokens of the words seen so far. It can be used by several threads."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._added = [token.content.lower() for token in backend.get_added_tokens_decoder().values()]
        self._lock = threading.Lock()
        self._number: dict[str, int] = {}
        self._ids = np.zeros(0, np.int32)
        self._offsets = np.zeros((0, 2), np.int32)
        self._bounds = np.zeros(1, np.int64)

    @staticmethod
    def fits(backend: Any) -> bool:
        """Whether this tokenizer splits text into words as BERT does."""
        kinds = [type(getattr(backend, name, None)).__name__ for name in ("normalizer", "pre_tokenizer", "model")]
        return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]

    def encode(self, texts: Sequence[str], encode_others: Callable[[list[str]], FlatTokens]) -> FlatTokens:
        """The tokens of the texts, without special tokens; `encode_others` is called with texts left to the tokenizer.

        The positions of their tokens are missing in all texts if it gives none.
        """
        parts, start = [], 0
        sizes = bounds_of([len(text) + 1 for text in texts])
        while start < len(texts):
            end = max(int(np.searchsorted(sizes, sizes[start] + CHUNK, side="right")) - 1, start + 1)
            parts.append(self._encode_part(texts[start:end], encode_others))
            start = end
        return join_tokens(parts)

    def _encode_part(self, texts: Sequence[str], encode_others: Callable[[list[str]], FlatTokens]) -> FlatTokens:
        joined = "\n".join(texts)
        kinds = _kinds(joined)
        starts = bounds_of([len(text) + 1 for text in texts])
        splits = self._can_split(texts, joined, kinds, starts)
        if splits.all():
            return self._encode_words(joined, kinds, starts)
        others = encode_others([text for text, one in zip(texts, splits.tolist(), strict=True) if not one])
        words = [text for text, one in zip(texts, splits.tolist(), strict=True) if one]
        if not words:
            return others
        joined = "\n".join(words)
        known = self._encode_words(joined, _kinds(joined), bounds_of([len(text) + 1 for text in words]))
        if len(others.ids) != len(others.offsets):
            known = known._replace(offsets=others.offsets)
        order = np.where(splits, np.cumsum(splits) - 1, splits.sum() + np.cumsum(~splits) - 1)
        return join_tokens((known, others)).take(order)

    def _can_split(
        self, texts: Sequence[str], joined: str, kinds: npt.NDArray[np.uint8], starts: Ints
    ) -> npt.NDArray[np.bool_]:
        """For each text whether its words are known from its characters alone."""
        if len(self._added) > MAX_ADDED:
            return np.zeros(len(texts), np.bool_)
        splits = np.ones(len(texts), np.bool_)
        splits[np.searchsorted(starts, np.flatnonzero(kinds == OTHER), side="right") - 1] = False
        if self._has_added(joined):
            splits &= [not self._has_added(text) for text in texts]
        return splits

    def _encode_words(self, joined: str, kind: npt.NDArray[np.uint8], starts: Ints) -> FlatTokens:
        """The tokens of texts that are joined by line ends, and start where `starts` says."""
        before = np.concatenate((np.zeros(1, np.uint8), kind[:-1]))
        begins = np.flatnonzero((kind == PUNCTUATION) | ((kind == LETTER) & (before != LETTER)))
        for mark in string.punctuation:
            joined = joined.replace(mark, f" {mark} ")
        words = joined.split()
        assert len(words) == len(begins)
        with self._lock:
            numbers = self._numbers(words)
            counts = np.diff(self._bounds)[numbers]
            pieces = ranges(self._bounds[numbers], counts)
            ids, offsets = self._ids[pieces], self._offsets[pieces]
        by_text = np.searchsorted(begins, starts)
        within = begins - np.repeat(starts[:-1], np.diff(by_text))
        offsets = offsets + np.repeat(within.astype(np.int32), counts)[:, None]
        return FlatTokens(ids, bounds_of(counts)[by_text], offsets)

    def _numbers(self, words: list[str]) -> Ints:
        """The number of each word; words that are not known yet are added."""
        new = [word for word in dict.fromkeys(words) if word not in self._number]
        if len(self._number) + len(new) > MAX_WORDS and self._number:
            self._clear()
            return self._numbers(words)
        if new:
            pieces = flat_encodings(self._backend.encode_batch(new, add_special_tokens=False), offsets=True)
            self._number.update(zip(new, range(len(self._number), len(self._number) + len(new)), strict=True))
            self._ids = np.concatenate((self._ids, pieces.ids))
            self._offsets = np.concatenate((self._offsets, pieces.offsets))
            self._bounds = np.concatenate((self._bounds, self._bounds[-1] + pieces.bounds[1:]))
        return np.fromiter(map(self._number.__getitem__, words), np.int64, len(words))

    def _clear(self) -> None:
        self._number = {}
        self._ids = self._ids[:0]
        self._offsets = self._offsets[:0]
        self._bounds = self._bounds[:1]

    def _has_added(self, text: str) -> bool:
        lower = text.lower()
        return any(token in lower for token in self._added)


def _kinds(text: str) -> npt.NDArray[np.uint8]:
    """The kind of each character."""
    if text.isascii():
        return _kind_table()[np.frombuffer(text.encode(), np.uint8)]
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    kinds = _kind_table()[np.minimum(points, 128)]
    beyond = points >= 128
    distinct, inverse = np.unique(points[beyond], return_inverse=True)
    kinds[beyond] = np.array([_kind_beyond(chr(point)) for point in distinct.tolist()], np.uint8)[inverse]
    return kinds


@functools.cache
def _kind_table() -> npt.NDArray[np.uint8]:
    """The kinds of ASCII characters."""
    kinds = np.full(129, OTHER, np.uint8)
    for characters, kind in (
        (" \t\n\r", SPACE),
        (string.ascii_letters + string.digits, LETTER),
        (string.punctuation, PUNCTUATION),
    ):
        kinds[[ord(character) for character in characters]] = kind
    return kinds


def _kind_beyond(character: str) -> int:
    """The kind of a character beyond ASCII. Splitting words at these is left to the tokenizer."""
    splits = unicodedata.category(character)[0] in SPLITS and character != REPLACEMENT
    return LETTER if splits else OTHER
