"""Learn a vocabulary from text: WordPiece, byte-level BPE, Unigram, whole words, or single characters.

Words are counted first, in limited memory (`word_counts`). The modules in `vocabularies` then learn from the counts.
The result is reproducible: the same text always gives the same token ids.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer as Backend

from regard.errors import InputError, did_you_mean, pluralize, setting
from regard.progress import OnProgress
from regard.text.text_files import read_chunks, split_chunks
from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies import bpe, characters, unigram, wordpiece, words
from regard.text.vocabularies.common import NoText, VocabularySettings
from regard.text.word_counts import WordCounter


class WordMethod(NamedTuple):
    """A way to learn a vocabulary from counted words."""

    new_backend: Callable[[VocabularySettings], Backend]
    learn: Callable[[Backend, Counter[str], VocabularySettings], Tokenizer]
    keep_spaces: bool  # True if the spaces before a word are part of it


WORD_METHODS = {
    "wordpiece": WordMethod(wordpiece.new_backend, wordpiece.learn, keep_spaces=False),
    "bpe": WordMethod(bpe.new_backend, bpe.learn, keep_spaces=True),
    "unigram": WordMethod(unigram.new_backend, unigram.learn, keep_spaces=False),
    "word": WordMethod(words.new_backend, words.learn, keep_spaces=False),
}
KINDS = (*WORD_METHODS, "char")


def train_tokenizer(
    files: Sequence[str | Path],
    *,
    kind: str = "wordpiece",
    size: int = 16_000,
    lowercase: bool | None = None,
    alphabet: int = 1000,
    max_words: int = 1_000_000,
    encoding: str | None = None,
    special_tokens: str | None = None,
    progress: OnProgress | None = None,
) -> Tokenizer:
    """Learn a tokenizer from text files (plain, .gz or .xz) of any size.

    files: text files, or one path.
    kind: "wordpiece" (BERT), "bpe" (byte-level, GPT-2), "unigram" (T5), "word" (whole words) or "char".
    size: tokens of the vocabulary, including special tokens.
    lowercase: convert texts to lowercase (default: only for wordpiece).
    alphabet: maximum number of characters in the vocabulary; rarer ones are unknown. Not used for bpe and word.
    max_words: maximum number of distinct words in memory; above it rare words are dropped, with a warning.
    encoding: encoding of the files (default: detected from their bytes).
    special_tokens: for bpe: those of "gpt2" (default), "t5", "roberta" or "bert"; the last two have a mask token.
    progress: called with the bytes read so far.

    Raises InputError for files without text and for settings that cannot be used, VocabularyTooSmall if `size` is too
    small for the characters of the text.

        tokenizer = train_tokenizer(["corpus.txt"], kind="bpe", size=32_000)
        tokenizer.save("vocabulary")
    """
    settings = _settings(kind, size, lowercase, alphabet, max_words, special_tokens)
    try:
        return _learn(read_chunks(files, encoding=encoding, progress=progress), settings)
    except NoText:
        names = ", ".join(map(str, files if not isinstance(files, str | Path) else [files]))
        raise InputError(f"{names}: there is no text to learn from. Give a file with words in it.") from None


def train_tokenizer_from_texts(
    texts: Iterable[str],
    *,
    kind: str = "wordpiece",
    size: int = 16_000,
    lowercase: bool | None = None,
    alphabet: int = 1000,
    max_words: int = 1_000_000,
    special_tokens: str | None = None,
) -> Tokenizer:
    """Learn a tokenizer from texts in memory. The settings are those of `train_tokenizer`."""
    settings = _settings(kind, size, lowercase, alphabet, max_words, special_tokens)
    try:
        return _learn((chunk for text in texts for chunk in split_chunks(iter([text]))), settings)
    except NoText:
        raise InputError("there is no text to learn from. Give at least one text with words in it.") from None


def _settings(
    kind: str, size: int, lowercase: bool | None, alphabet: int, max_words: int, special_tokens: str | None
) -> VocabularySettings:
    """The settings with defaults filled in. Raises InputError if they cannot be used."""
    if kind not in KINDS:
        raise InputError(f'{setting("kind")}: "{kind}" is not a kind of vocabulary.{did_you_mean(kind, KINDS)}')
    if special_tokens is not None and kind != "bpe":
        raise InputError(
            f"special tokens can be chosen for bpe only; {kind} has its own. Remove {setting('special_tokens')}."
        )
    if special_tokens is not None and special_tokens not in bpe.SPECIAL_TOKENS:
        raise InputError(
            f'special tokens "{special_tokens}" do not exist.{did_you_mean(special_tokens, bpe.SPECIAL_TOKENS)}'
        )
    for name, value in (("size", size), ("alphabet", alphabet), ("max_words", max_words)):
        if value < 1:
            raise InputError(f"{setting(name)} is {value}, expected at least 1.")
    if lowercase is None:
        lowercase = kind == "wordpiece"
    return VocabularySettings(kind, size, lowercase, alphabet, max_words, special_tokens or "gpt2")


def _learn(chunks: Iterator[str], settings: VocabularySettings) -> Tokenizer:
    if settings.kind == "char":
        return characters.learn(chunks, settings)
    method = WORD_METHODS[settings.kind]
    backend = method.new_backend(settings)
    assert backend.pre_tokenizer is not None
    counter = WordCounter(
        backend.normalizer, backend.pre_tokenizer, keep_spaces=method.keep_spaces, max_words=settings.max_words
    )
    only_spaces = True
    for chunk in chunks:
        only_spaces = only_spaces and chunk.isspace()
        counter.add(chunk)
    counter.flush()
    if only_spaces or not counter.words:
        raise NoText
    tokenizer = method.learn(backend, counter.words, settings)
    _warn(counter, tokenizer, settings)
    return tokenizer


def _warn(counter: WordCounter, tokenizer: Tokenizer, settings: VocabularySettings) -> None:
    """Warn about rare words that were dropped, and about a vocabulary smaller than requested."""
    if counter.dropped:
        warnings.warn(
            f"more than {settings.max_words:,} distinct words: the rarest were dropped, "
            f"{counter.dropped / counter.total:.1%} of the text. Raise max_words to keep them; this takes more memory.",
            stacklevel=4,
        )
    if tokenizer.size < settings.size and settings.kind != "word":  # which has all words of a small text
        warnings.warn(
            f"the text gives {pluralize(tokenizer.size, 'token')}, not the requested {settings.size:,}. "
            "Give more text, or a smaller size.",
            stacklevel=4,
        )
