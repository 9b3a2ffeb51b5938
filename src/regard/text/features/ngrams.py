"""The n-grams of a text as tokens: which of the known word and character n-grams it has, each once."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from regard.errors import FolderError
from regard.text.features.encoding import FeatureBackend, FeatureEncoding
from regard.text.features.hashes import (
    MAX_TEXTS,
    Hashes,
    Ints,
    character_hashes,
    code_points,
    split_keys,
    unique_keys,
    word_hashes,
)

CHARACTERS = 1 << 20  # of texts that are hashed at once
MERGE = 16  # parts whose counts are added up


@dataclass(frozen=True)
class NgramRanges:
    """The shortest and the longest n-grams of words and of characters; (0, 0) for none."""

    words: tuple[int, int] = (1, 2)
    characters: tuple[int, int] = (2, 5)
    lowercase: bool = True

    def keys(self, texts: Sequence[str]) -> tuple[Hashes, Hashes]:
        """The keys of the word and of the character n-grams of some texts."""
        points = code_points(texts, lowercase=self.lowercase)
        return word_hashes(points, *self.words), character_hashes(points, *self.characters)


class Ngrams(FeatureBackend):
    """Token 0 is in every text; then come the known word n-grams, then the known character n-grams."""

    def __init__(self, ranges: NgramRanges, words: Hashes, characters: Hashes) -> None:
        self.ranges, self.words, self.characters = ranges, words, characters

    @property
    def size(self) -> int:
        return 1 + len(self.words) + len(self.characters)

    def encode_texts(self, texts: Sequence[str]) -> list[FeatureEncoding]:
        encodings: list[FeatureEncoding] = []
        for part in _parts(texts):
            encodings += self._encode(part)
        return encodings

    def _encode(self, texts: Sequence[str]) -> list[FeatureEncoding]:
        owners, rows = [np.arange(len(texts), dtype=np.uint16)], [np.zeros(len(texts), np.int32)]
        tables = ((self.words, 1), (self.characters, 1 + len(self.words)))
        for keys, (table, first) in zip(self.ranges.keys(texts), tables, strict=True):
            text, row = _look_up(keys, table)
            owners.append(text)
            rows.append((row + first).astype(np.int32))
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")  # a radix sort, as for all numbers of 16 bits
        bounds = np.searchsorted(owner[order], np.arange(len(texts) + 1)).tolist()
        flat = np.concatenate(rows)[order]
        return [
            FeatureEncoding(array("i", flat[start:end].tobytes()), [(0, len(text))] * (end - start))
            for text, start, end in zip(texts, bounds[:-1], bounds[1:], strict=True)
        ]

    def settings(self) -> Mapping[str, Any]:
        return {
            "type": "ngrams",
            "words": list(self.ranges.words),
            "characters": list(self.ranges.characters),
            "lowercase": self.ranges.lowercase,
            "word_hashes": _to_text(self.words),
            "character_hashes": _to_text(self.characters),
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        first, second = ((int(low), int(high)) for low, high in (settings["words"], settings["characters"]))
        ranges = NgramRanges(first, second, bool(settings["lowercase"]))
        return cls(ranges, _from_text(settings["word_hashes"]), _from_text(settings["character_hashes"]))


def _look_up(keys: Hashes, table: Hashes) -> tuple[npt.NDArray[np.uint16], Ints]:
    """The texts and the rows of the n-grams that are in the table, which is sorted."""
    hashes, text = split_keys(unique_keys(keys))
    if not len(table):
        return text[:0], np.zeros(0, np.int64)
    row = np.minimum(np.searchsorted(table, hashes), len(table) - 1)
    known = table[row] == hashes
    return text[known], row[known]


def _to_text(hashes: Hashes) -> str:
    return base64.b64encode(hashes.astype("<u8").tobytes()).decode("ascii")


def _from_text(text: str) -> Hashes:
    hashes = np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
    if len(hashes) > 1 and not (hashes[1:] > hashes[:-1]).all():
        raise FolderError("features.json: the hashes are not sorted, so the file is damaged. Copy it again.")
    return hashes


def _parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in parts of about `CHARACTERS` characters."""
    part: list[str] = []
    size = 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= CHARACTERS or len(part) == MAX_TEXTS:
            yield part
            part, size = [], 0
    if part:
        yield part


class NgramCounter:
    """In how many texts each n-gram occurs, from texts that are read once."""

    def __init__(self, ranges: NgramRanges) -> None:
        self.ranges = ranges
        self.texts = 0
        self._parts: tuple[list[HashCounts], list[HashCounts]] = ([], [])

    def add(self, texts: Sequence[str]) -> None:
        for part in _parts(texts):
            self.texts += len(part)
            for keys, counts in zip(self.ranges.keys(part), self._parts, strict=True):
                counts.append(HashCounts.of_keys(keys))
                if len(counts) >= MERGE:
                    counts[:] = [HashCounts.sum(counts)]

    def vocabulary(self, *, min_texts: int, limit: int) -> tuple[Ngrams, npt.NDArray[np.int64]]:
        """The n-grams in at least `min_texts` texts, and in how many each is; token 0 is in all.

        Of more than `limit` word n-grams, or character n-grams, those in most texts are chosen.
        """
        words, characters = (HashCounts.sum(counts).most(min_texts, limit) for counts in self._parts)
        tokenizer = Ngrams(self.ranges, words.hash, characters.hash)
        return tokenizer, np.concatenate(([self.texts], words.texts, characters.texts))


class HashCounts(NamedTuple):
    """Hashes, sorted, and in how many texts each occurs."""

    hash: Hashes
    texts: Ints

    @classmethod
    def of_keys(cls, keys: Hashes) -> HashCounts:
        hashes, _ = split_keys(unique_keys(keys))
        return cls.sum([cls(hashes, np.ones(len(hashes), np.int64))], ordered=True)

    @classmethod
    def sum(cls, parts: Sequence[HashCounts], *, ordered: bool = False) -> HashCounts:
        hashes = np.concatenate([part.hash for part in parts] or [np.zeros(0, np.uint64)])
        counts = np.concatenate([part.texts for part in parts] or [np.zeros(0, np.int64)])
        if not len(hashes):
            return cls(hashes, counts)
        if not ordered:
            order = np.argsort(hashes, kind="stable")
            hashes, counts = hashes[order], counts[order]
        starts = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1])))
        return cls(hashes[starts], np.add.reduceat(counts, starts))

    def most(self, min_texts: int, limit: int) -> HashCounts:
        keep = self.texts >= min_texts
        if keep.sum() > limit:
            order = np.argsort(-self.texts, kind="stable")[:limit]
            keep &= np.isin(np.arange(len(keep)), order)
        return HashCounts(self.hash[keep], self.texts[keep])
