"""Count the words of a text of any length in limited memory.

Words are the output of the tokenizer's own normalizer and pre-tokenizer. Running these over every line is slow, so
strings between spaces are counted first, and each distinct string is split into words once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

MAX_WORD_LENGTH = 100  # characters, as in WordPiece; longer words are split
MAX_STRINGS = 400_000  # distinct strings in memory before they are split into words
MAX_CHARACTERS = 16_000_000  # characters of these strings
SPACES_AND_STRING = re.compile(r"\s*\S+|\s+")


@dataclass
class WordCounter:
    """Counts words. Above `max_words` distinct words the rarer half is dropped."""

    normalizer: Normalizer | None
    pre_tokenizer: PreTokenizer
    keep_spaces: bool  # True if the spaces before a string are part of the words, as in byte-level BPE
    max_words: int = 1_000_000
    words: Counter[str] = field(default_factory=Counter)
    total: int = 0  # words counted, including repetitions
    dropped: int = 0  # of these, words that were dropped because they are rare
    strings: Counter[str] = field(default_factory=Counter)
    characters: int = 0  # upper bound of the characters in `strings`

    def add(self, text: str) -> None:
        self.strings.update(SPACES_AND_STRING.findall(text) if self.keep_spaces else text.split())
        self.characters += len(text)
        if len(self.strings) > MAX_STRINGS or self.characters > MAX_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Split the strings into words and count these."""
        words = self.words
        for string, count in self.strings.items():
            for word in self._split(string):
                words[word] += count
                self.total += count
            if len(words) > self.max_words:
                self._drop_rare()
        self.strings.clear()
        self.characters = 0

    def _split(self, string: str) -> Iterator[str]:
        if self.normalizer is not None:
            string = self.normalizer.normalize_str(string)
        for word, _ in self.pre_tokenizer.pre_tokenize_str(string):
            if len(word) <= MAX_WORD_LENGTH:
                yield word
            else:
                yield from (word[start : start + MAX_WORD_LENGTH] for start in range(0, len(word), MAX_WORD_LENGTH))

    def _drop_rare(self) -> None:
        """Keep the more frequent half; among words with the same count, those that occurred first."""
        frequent = sorted(self.words.items(), key=lambda item: -item[1])[: self.max_words // 2]
        total_before = self.words.total()
        self.words.clear()
        self.words.update(dict(frequent))
        self.dropped += total_before - self.words.total()


def rank(words: Counter[str]) -> list[tuple[str, int]]:
    """Words and counts, the most frequent first; words with the same count in alphabetical order."""
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))


def count_characters(words: Counter[str]) -> Counter[str]:
    """The count of each character in the words."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return counts


def scale_counts(words: Iterable[tuple[str, int]], total: int, limit: int) -> Iterator[tuple[str, int]]:
    """Counts in proportion, with a sum of at most `limit`. Rounding errors are carried over to the next word."""
    if total <= limit:
        yield from words
        return
    sum_before = 0
    sum_scaled = 0
    for word, count in words:
        sum_before += count
        scaled = sum_before * limit // total - sum_scaled
        sum_scaled += scaled
        if scaled:
            yield word, scaled
