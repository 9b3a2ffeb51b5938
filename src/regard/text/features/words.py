"""The features of each word as tokens: itself, its shape, its prefixes and suffixes. A linear tagger reads them.

Words are as `\\w+(?:[.'’-]\\w+)*|\\S` of a regular expression. Every word has the same number of tokens, all with the
offsets of the word; token 0 stands for features that are not known.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from regard.text.features.encoding import FeatureBackend, FeatureEncoding

WORD = re.compile(r"\w+(?:[.'’-]\w+)*|\S")
AFFIXES = (1, 2, 3, 4)  # characters
FEATURES = 4 + 2 * len(AFFIXES)
MAX_WORDS = 1 << 17  # whose features are remembered
UNKNOWN = 0


class WordFeatures(FeatureBackend):
    """Features by name, in the order of their ids."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._ids = {name: number for number, name in enumerate(self.names, start=1)}
        self._words: dict[str, tuple[int, ...]] = {}

    @classmethod
    def learn(cls, texts: Iterable[str], *, min_count: int = 1) -> Self:
        """The features that occur at least `min_count` times in the texts."""
        words = Counter(word for text in texts for word in WORD.findall(text))
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for name in set(word_features(word)):
                counts[name] += count
        return cls(sorted(name for name, count in counts.items() if count >= min_count))

    @property
    def size(self) -> int:
        return 1 + len(self.names)

    def encode_texts(self, texts: Sequence[str]) -> list[FeatureEncoding]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> FeatureEncoding:
        ids, offsets = array("i"), []
        for match in WORD.finditer(text):
            ids.extend(self._features(match[0]))
            offsets += [match.span()] * FEATURES
        if not offsets:  # no text is empty
            ids.extend([UNKNOWN] * FEATURES)
            offsets = [(0, 0)] * FEATURES
        return FeatureEncoding(ids, offsets)

    def _features(self, word: str) -> tuple[int, ...]:
        ids = self._words.get(word)
        if ids is None:
            ids = tuple(self._ids.get(name, UNKNOWN) for name in word_features(word))
            if len(self._words) >= MAX_WORDS:
                self._words.clear()
            self._words[word] = ids
        return ids

    def settings(self) -> Mapping[str, Any]:
        return {"type": "words", "features": list(self.names)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        names = settings["features"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("features is no list of texts")
        return cls(names)


def word_features(word: str) -> list[str]:
    """The names of a word's features, always as many."""
    lower, shape = word.lower(), word_shape(word)
    names = [f"w {word}", f"l {lower}", f"s {shape}", f"c {collapsed(shape)}"]
    names += [f"p {lower[:size]}" if len(word) > size else f"p {size}" for size in AFFIXES]
    names += [f"e {lower[-size:]}" if len(word) > size else f"e {size}" for size in AFFIXES]
    return names


def word_shape(word: str) -> str:
    """Such as "Xxxx-dd": X for an uppercase letter, x for another letter, d for a digit; of the first 12 characters."""
    return "".join(_kind(character) for character in word[:12])


def _kind(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "d" if character.isdigit() else character


def collapsed(shape: str) -> str:
    """The shape with runs of the same character as one, such as "Xx-d"."""
    return re.sub(r"(.)\1+", r"\1", shape)
