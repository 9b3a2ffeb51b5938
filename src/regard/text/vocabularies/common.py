"""What all kinds of vocabularies share: settings, errors, and training on counted words.

The trainers of the `tokenizers` library take text, not counts, and keep every distinct word in memory. So each word is
repeated as often as it was counted, with counts scaled down above MAX_TRAINING_WORDS.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tokenizers import AddedToken, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer
from regard.text.word_counts import count_characters, rank, scale_counts

MAX_TRAINING_WORDS = 10_000_000  # words given to a trainer, including repetitions
REPETITIONS = 1000  # of a word in one text for the trainer
MAX_CHARACTERS = 12_000_000  # of distinct words given to a trainer, which then takes about a gigabyte


@dataclass(frozen=True)
class VocabularySettings:
    """What to learn.

    kind: wordpiece, bpe, unigram, word or char.
    size: tokens, including special tokens.
    lowercase: convert texts to lowercase.
    alphabet: maximum number of characters in the vocabulary.
    max_words: maximum number of distinct words that are counted.
    special_tokens: name of the special tokens of bpe: gpt2, t5, roberta or bert.
    """

    kind: str
    size: int
    lowercase: bool
    alphabet: int
    max_words: int
    special_tokens: str = "gpt2"


class VocabularyTooSmall(InputError):
    """The size is too small for the characters of the text; `needed` is the smallest possible size."""

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class NoText(Exception):
    """There is nothing to learn from. The caller, who knows the source of the text, raises an InputError."""


def set_normalizer(backend: Backend, steps: list[normalizers.Normalizer], *, lowercase: bool) -> None:
    """Use these normalization steps, followed by conversion to lowercase if `lowercase`."""
    if lowercase:
        steps = [*steps, normalizers.Lowercase()]
    if steps:
        backend.normalizer = normalizers.Sequence(steps) if len(steps) > 1 else steps[0]


def in_id_order(tokens: dict[str, str]) -> list[str]:
    """Special tokens in the order of their ids: the padding token, if there is one, has the id 0."""
    order = ("pad", "eos", "unk", "cls", "sep", "mask", "bos")
    return list(dict.fromkeys(tokens[role] for role in order if role in tokens))


def add_special_tokens(backend: Backend, names: Iterable[str]) -> None:
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])


def finish_tokenizer(backend: Backend, tokens: dict[str, str]) -> Tokenizer:
    """The tokenizer with its special tokens; `tokens` are these by role."""
    add_special_tokens(backend, in_id_order(tokens))
    return Tokenizer(backend, tokens=tokens)


def train(model: models.Model, trainer: trainers.Trainer, words: list[tuple[str, int]]) -> Backend:
    """Train a model of the `tokenizers` library on words and their counts."""
    backend = Backend(model)
    backend.pre_tokenizer = pre_tokenizers.CharDelimiterSplit("\n")
    words = limit_characters(words, MAX_CHARACTERS)
    total = sum(count for _, count in words)
    backend.train_from_iterator(_repeat_words(scale_counts(words, total, MAX_TRAINING_WORDS)), trainer)
    return backend


def _repeat_words(words: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Each word as often as it was counted, in texts of up to REPETITIONS lines (no word contains a line break)."""
    for word, count in words:
        full_texts, rest = divmod(count, REPETITIONS)
        if full_texts:
            text = "\n".join([word] * REPETITIONS)
            for _ in range(full_texts):
                yield text
        if rest:
            yield "\n".join([word] * rest)


def limit_characters(words: list[tuple[str, int]], limit: int) -> list[tuple[str, int]]:
    """The first words, with at most `limit` characters in total."""
    ends = itertools.accumulate(len(word) for word, _ in words)
    return [pair for pair, end in zip(words, ends, strict=True) if end <= limit]


def within_alphabet(words: Counter[str], limit: int) -> tuple[list[tuple[str, int]], list[str]]:
    """The words that consist of the `limit` most frequent characters, most frequent first; and these characters."""
    alphabet = {character for character, _ in rank(count_characters(words))[:limit]}
    covered = [(word, count) for word, count in rank(words) if alphabet.issuperset(word)]
    return covered, sorted(alphabet)


def check_size(settings: VocabularySettings, needed: int, *, alphabet: int, specials: int) -> None:
    """Raise VocabularyTooSmall if the size is below `needed`."""
    if settings.size >= needed:
        return
    unit = {"bpe": "bytes", "word": "words"}.get(settings.kind, "characters")
    inside = ""
    if settings.kind == "wordpiece":
        inside = f", {needed - alphabet - specials} of them also inside words (##)"
    fix = "" if settings.kind in ("bpe", "word") else ", or reduce the number of characters with alphabet"
    raise VocabularyTooSmall(
        f"size {settings.size} is too small for {specials} special tokens and {alphabet} {unit}{inside}. "
        f"Give a size of at least {needed}, better several times as much{fix}.",
        needed,
    )
