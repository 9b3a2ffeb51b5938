"""What a vocabulary makes of texts: how much it covers, and how finely it cuts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from regard.errors import InputError
from regard.text.tokenizer import Encoding, Tokenizer

WORD = re.compile(r"\w+|[^\w\s]")  # one rule for every kind of vocabulary, so that they can be compared
MOST = 12  # pieces that are shown


@dataclass(frozen=True)
class TokenizerReport:
    """A vocabulary, measured on a sample of texts. A word is a run of letters and digits, or any other single mark."""

    kind: str
    size: int
    texts: int
    words: int
    coverage: float  # share of the words in which nothing is unknown
    pieces_per_word: float
    unknown_rate: float  # share of the pieces that are unknown
    whole: float  # share of the words that are one piece
    sample: tuple[str, ...]  # words of the texts that are kept whole, the most frequent first
    longest: tuple[str, ...]  # pieces of the vocabulary
    example: str
    example_pieces: tuple[str, ...]


def tokenizer_report(tokenizer: Tokenizer, texts: Iterable[str]) -> TokenizerReport:
    """Encode the texts and say how the vocabulary fits them."""
    given = [text for text in texts if text.strip()]
    if not given:
        raise InputError("there is no text to report on. Give at least one text with words in it.")
    words = pieces = unknown = covered = whole = 0
    kept: dict[str, int] = {}
    for text, found in zip(given, tokenizer.encode_batch(given, special=False), strict=True):
        pieces += len(found)
        unknown += found.ids.count(tokenizer.unk) if tokenizer.unk is not None else 0
        for word, ids in _by_word(text, found):
            words += 1
            known = tokenizer.unk is None or tokenizer.unk not in ids
            covered += known and bool(ids)
            if known and len(ids) == 1:
                whole += 1
                kept[word] = kept.get(word, 0) + word.isalnum()
    example = _example(given)
    return TokenizerReport(
        kind=_kind(tokenizer),
        size=tokenizer.size,
        texts=len(given),
        words=words,
        coverage=covered / max(1, words),
        pieces_per_word=pieces / max(1, words),
        unknown_rate=unknown / max(1, pieces),
        whole=whole / max(1, words),
        sample=tuple(sorted(filter(kept.get, kept), key=lambda word: (-kept[word], word))[:MOST]),
        longest=_longest(tokenizer),
        example=example,
        example_pieces=tuple(tokenizer.backend.encode(example).tokens),
    )


def _by_word(text: str, found: Encoding) -> list[tuple[str, list[int]]]:
    """Each word of the text with the pieces that touch it. A piece may touch several words, as `...` does."""
    spans, first, answer = found.offsets, 0, []
    for match in WORD.finditer(text):
        start, stop = match.span()
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        ids, place = [], first
        while place < len(spans) and spans[place][0] < stop:
            if spans[place][1] > start:
                ids.append(found.ids[place])
            place += 1
        answer.append((match.group(), ids))
    return answer


def _example(texts: list[str]) -> str:
    """The beginning of the first text that has a sentence's length, or of the longest."""
    text = next((text for text in texts if len(text.split()) >= 6), max(texts, key=len)).strip()
    return text if len(text) <= 80 else text[:80].rsplit(maxsplit=1)[0]


def _kind(tokenizer: Tokenizer) -> str:
    """The tokenizer's kind; whole words of one character each are called what they are."""
    characters = tokenizer.kind == "wordlevel" and all(len(piece) == 1 for piece in _ordinary(tokenizer))
    return "char" if characters else tokenizer.kind


def _ordinary(tokenizer: Tokenizer) -> list[str]:
    special = set(tokenizer.special.values())
    return [piece for piece, number in tokenizer.backend.get_vocab().items() if number not in special]


def _longest(tokenizer: Tokenizer) -> tuple[str, ...]:
    return tuple(sorted(_ordinary(tokenizer), key=lambda piece: (-len(piece.removeprefix("##")), piece))[:MOST])
