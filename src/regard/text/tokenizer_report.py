"""Measure how a vocabulary fits texts: its coverage, and the number of tokens per word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from regard.errors import InputError
from regard.text.encoding import Encoding
from regard.text.tokenizer import Tokenizer
from regard.text.word_spans import word_spans

MAX_SHOWN = 12  # tokens


@dataclass(frozen=True)
class TokenizerReport:
    """Statistics of a vocabulary on texts. A word is a run of letters and digits, or one other character."""

    kind: str
    size: int
    texts: int
    words: int
    coverage: float  # fraction of the words without an unknown token
    tokens_per_word: float
    unknown_fraction: float  # of the tokens
    single_token_fraction: float  # of the words
    frequent_words: tuple[str, ...]  # the most frequent words that are one token
    longest_tokens: tuple[str, ...]  # of the vocabulary
    example: str
    example_tokens: tuple[str, ...]


def tokenizer_report(tokenizer: Tokenizer, texts: Iterable[str]) -> TokenizerReport:
    """Encode the texts and measure how the vocabulary fits them. Raises InputError if all texts are empty."""
    samples = [text for text in texts if text.strip()]
    if not samples:
        raise InputError("there is no text to report on. Give at least one text with words in it.")
    words = tokens = unknown = covered = single_token = 0
    frequencies: dict[str, int] = {}
    for text, encoding in zip(samples, tokenizer.encode_batch(samples, special=False), strict=True):
        tokens += len(encoding)
        unknown += encoding.ids.count(tokenizer.unk) if tokenizer.unk is not None else 0
        for word, ids in _ids_by_word(text, encoding):
            words += 1
            known = tokenizer.unk is None or tokenizer.unk not in ids
            covered += known and bool(ids)
            if known and len(ids) == 1:
                single_token += 1
                frequencies[word] = frequencies.get(word, 0) + word.isalnum()
    example = _example(samples)
    frequent = sorted(filter(frequencies.get, frequencies), key=lambda word: (-frequencies[word], word))
    return TokenizerReport(
        kind=_kind(tokenizer),
        size=tokenizer.size,
        texts=len(samples),
        words=words,
        coverage=covered / max(1, words),
        tokens_per_word=tokens / max(1, words),
        unknown_fraction=unknown / max(1, tokens),
        single_token_fraction=single_token / max(1, words),
        frequent_words=tuple(frequent[:MAX_SHOWN]),
        longest_tokens=_longest_tokens(tokenizer),
        example=example,
        example_tokens=tuple(tokenizer.backend.encode(example).tokens),
    )


def _ids_by_word(text: str, encoding: Encoding) -> list[tuple[str, list[int]]]:
    """Each word of the text with the tokens that overlap it. A token may overlap several words, as `...` does."""
    spans = encoding.offsets
    first = 0
    ids_by_word = []
    for start, stop in word_spans(text):  # the same rule for every kind of vocabulary, so that they can be compared
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        ids = []
        position = first
        while position < len(spans) and spans[position][0] < stop:
            if spans[position][1] > start:
                ids.append(encoding.ids[position])
            position += 1
        ids_by_word.append((text[start:stop], ids))
    return ids_by_word


def _example(texts: list[str]) -> str:
    """The beginning of the first text with at least six words, or of the longest text."""
    text = next((text for text in texts if len(text.split()) >= 6), max(texts, key=len)).strip()
    return text if len(text) <= 80 else text[:80].rsplit(maxsplit=1)[0]


def _kind(tokenizer: Tokenizer) -> str:
    """The kind of vocabulary; "char" for whole words of one character each."""
    if tokenizer.kind != "wordlevel":
        return tokenizer.kind
    is_char = all(len(token) == 1 for token in _ordinary_tokens(tokenizer))
    return "char" if is_char else "word"


def _ordinary_tokens(tokenizer: Tokenizer) -> list[str]:
    special = set(tokenizer.special.values())
    return [token for token, number in tokenizer.backend.get_vocab().items() if number not in special]


def _longest_tokens(tokenizer: Tokenizer) -> tuple[str, ...]:
    return tuple(
        sorted(_ordinary_tokens(tokenizer), key=lambda token: (-len(token.removeprefix("##")), token))[:MAX_SHOWN]
    )
