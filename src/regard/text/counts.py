"""How often each word occurs in a stream of any length, in bounded memory.

Words are what the tokenizer's own normaliser and pre-tokenizer make of a text. Running them over every line is the
slow part, so runs between blanks are counted first, and each distinct run of a while is cut into words once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

LONGEST = 100  # characters of a word, as WordPiece has it; longer ones are cut
RUNS = 400_000  # distinct runs that are held before they are cut into words
RUN_CHARACTERS = 16_000_000  # and their characters
BLANKS_AND_RUN = re.compile(r"\s*\S+|\s+")


@dataclass
class WordCounter:
    """Counts words; past `most` distinct ones the rarest are forgotten until half of them are left."""

    normalizer: Normalizer | None
    pre_tokenizer: PreTokenizer
    blanks: bool  # whether the blanks before a run are part of the words, as with byte-level pairs
    max_words: int = 1_000_000
    words: Counter[str] = field(default_factory=Counter)
    seen: int = 0  # words in all
    forgotten: int = 0  # of them, those forgotten as rare
    runs: Counter[str] = field(default_factory=Counter)
    characters: int = 0  # of the runs that are held, at most

    def add(self, text: str) -> None:
        self.runs.update(BLANKS_AND_RUN.findall(text) if self.blanks else text.split())
        self.characters += len(text)
        if len(self.runs) > RUNS or self.characters > RUN_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Cut the runs into words."""
        words = self.words
        for run, count in self.runs.items():
            for word in self._cut(run):
                words[word] += count
                self.seen += count
            if len(words) > self.max_words:
                self._forget()
        self.runs.clear()
        self.characters = 0

    def _cut(self, run: str) -> Iterator[str]:
        if self.normalizer is not None:
            run = self.normalizer.normalize_str(run)
        for word, _ in self.pre_tokenizer.pre_tokenize_str(run):
            if len(word) <= LONGEST:
                yield word
            else:
                yield from (word[start : start + LONGEST] for start in range(0, len(word), LONGEST))

    def _forget(self) -> None:
        """Leave the more frequent half; among equals those that were seen first."""
        kept = sorted(self.words.items(), key=lambda item: -item[1])[: self.max_words // 2]
        before = self.words.total()
        self.words.clear()
        self.words.update(dict(kept))
        self.forgotten += before - self.words.total()


def ranked(words: Counter[str]) -> list[tuple[str, int]]:
    """From the most frequent down; equals in the order of the alphabet."""
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))


def characters(words: Counter[str]) -> Counter[str]:
    """How often each character occurs in the words."""
    found: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            found[character] += count
    return found


def scaled(words: Iterable[tuple[str, int]], total: int, most: int) -> Iterator[tuple[str, int]]:
    """Counts in proportion, at most `most` together: what is lost to rounding is carried over to the next word."""
    if total <= most:
        yield from words
        return
    before = after = 0
    for word, count in words:
        before += count
        share = before * most // total - after
        after += share
        if share:
            yield word, share
