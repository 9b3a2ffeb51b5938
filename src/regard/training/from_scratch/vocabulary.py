"""The vocabulary and tokenizer of a network that is trained from scratch."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from regard.checkpoint.families import FAMILIES
from regard.checkpoint.source import from_preset
from regard.errors import InputError, setting
from regard.text.learn import train_tokenizer_from_texts
from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies.common import VocabularyTooSmall

MIN_VOCABULARY = 1000
TWO_VOCABULARY_FAMILIES = ("marian", "transformer", "recurrent")  # families whose folders can hold two vocabularies


def open_tokenizer(tokenizer: str | Path | Tokenizer) -> Tokenizer:
    return tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.load(tokenizer)


def learn_tokenizer(name: str, texts: Iterable[str], targets: Iterable[str] | None = None) -> Tokenizer:
    """Train a tokenizer for a preset, and a second one if `targets` are given."""
    if targets is not None:
        check_two_vocabularies(name)
    tokenizer = _train_tokenizer(name, texts)
    tokenizer.target = None if targets is None else _train_tokenizer(name, targets)
    return tokenizer


def _train_tokenizer(name: str, texts: Iterable[str]) -> Tokenizer:
    with vocabulary_errors(name):
        return train_tokenizer_from_texts(texts, **vocabulary_of(name)._asdict())


@contextlib.contextmanager
def vocabulary_errors(name: str) -> Iterator[None]:
    """Ignore warnings about a vocabulary below the preset's size; name the preset in the error if it is too small."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the text gives")
            yield
    except VocabularyTooSmall as error:
        raise InputError(
            f'the vocabulary of preset "{name}" is too small for the characters of this text, which need '
            f"{error.needed} tokens at least. Use a larger preset, or your own vocabulary: regard tokenizer FILE "
            "--size N --out DIR, and then --tokenizer DIR."
        ) from error


class VocabularySpec(NamedTuple):
    """The kind and size of the vocabulary of a preset, and the model whose special tokens it has."""

    kind: str
    size: int
    special_tokens: str | None = None


def vocabulary_of(name: str) -> VocabularySpec:
    """The vocabulary that is trained for a preset; masked language models get one with a mask token."""
    shape: Any = from_preset(name, weights=False)
    size: int = shape.config.vocabulary
    family = FAMILIES[shape.family]
    if family.vocabulary_kind == "bpe":
        size = max(size, MIN_VOCABULARY)  # a byte-level vocabulary has all 256 bytes
    return VocabularySpec(family.vocabulary_kind, size, family.special_tokens)


def check_two_vocabularies(name: str) -> None:
    """Raise InputError if folders of the family cannot store two vocabularies."""
    family = from_preset(name, weights=False).family
    if family not in TWO_VOCABULARY_FAMILIES:
        raise InputError(
            f"folders of the family {family} hold one vocabulary for both languages. Use a preset of the families "
            f"{', '.join(TWO_VOCABULARY_FAMILIES)} (transformer-small, gru-additive, …), or leave "
            f"{setting('vocabularies')} out."
        )
