"""Which tokens start a word, by the markers in the tokenizer's vocabulary: for whole-word masking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer

BEGINS = "begins"  # per token: 1 if it starts a word
INSIDE = "##"  # WordPiece marks tokens inside a word; the other tokenizers mark the space before a word
SPACES = ("Ġ", "▁")  # the space in byte-level BPE and in SentencePiece
BLANK = set("ĠĊĉč▁ \t\n\r")  # characters of tokens that contain only spaces


@dataclass(frozen=True, eq=False)
class WordStarts:
    """Which tokens start a word, and which are between words, so that the next token starts one."""

    begins_V: npt.NDArray[np.bool_]
    between_V: npt.NDArray[np.bool_]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> WordStarts:
        """From the tokens of a vocabulary. Raises InputError if they do not mark words."""
        ids = tokenizer.backend.get_vocab()
        starts_word = _word_start_rule(list(ids))
        size, special = max(ids.values()) + 1, set(tokenizer.special.values())
        begins_V, between_V = np.ones(size, bool), np.zeros(size, bool)
        for token, number in ids.items():
            between_V[number] = number in special or set(token) <= BLANK
            begins_V[number] = between_V[number] or starts_word(token)
        return cls(begins_V, between_V)

    def __call__(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """1 for each flat token that starts a word; special tokens and spaces count as separate words."""
        starts: npt.NDArray[np.bool_] = self.begins_V[ids]
        starts[:1] = True
        starts[1:] |= self.between_V[ids[:-1]]
        return starts.astype(np.int8)


def _word_start_rule(tokens: list[str]) -> Callable[[str], bool]:
    """A function that returns whether a token starts a word, by the markers of this vocabulary."""
    if any(token.startswith(INSIDE) and token != INSIDE for token in tokens):
        return lambda token: not token.startswith(INSIDE)
    for space in SPACES:
        if any(token.startswith(space) and len(token) > 1 for token in tokens):
            return lambda token: token.startswith(space)
    raise InputError(
        "the tokens of this tokenizer do not mark word starts, so whole words cannot be masked. Use a WordPiece, "
        'byte-level or SentencePiece vocabulary, or the unit "token" or "span".'
    )
