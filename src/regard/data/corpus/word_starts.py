"""Which tokens start a word, by the markers in the tokenizer's vocabulary: for whole-word masking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer

BEGINS = "begins"  # of each token: 1 where a word begins with it
INSIDE = "##"  # WordPiece marks tokens inside a word; the other tokenizers mark the space before a word
SPACES = ("Ġ", "▁")  # as byte-level pairs and as SentencePiece write it
BLANK = set("ĠĊĉč▁ \t\n\r")  # characters of tokens that contain only spaces


@dataclass(frozen=True, eq=False)
class WordStarts:
    """Which tokens start a word, and which are between words, so that the next token starts one."""

    begins_V: npt.NDArray[np.bool_]
    between_V: npt.NDArray[np.bool_]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> WordStarts:
        """From the tokens of a vocabulary. Raises InputError if they do not mark words."""
        pieces = tokenizer.backend.get_vocab()
        begins = _mark(list(pieces))
        size, special = max(pieces.values()) + 1, set(tokenizer.special.values())
        begins_V, between_V = np.ones(size, bool), np.zeros(size, bool)
        for piece, number in pieces.items():
            between_V[number] = number in special or set(piece) <= BLANK
            begins_V[number] = between_V[number] or begins(piece)
        return cls(begins_V, between_V)

    def __call__(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """1 for each flat token that starts a word; special tokens and spaces are words of their own."""
        starts: npt.NDArray[np.bool_] = self.begins_V[ids]
        starts[:1] = True
        starts[1:] |= self.between_V[ids[:-1]]
        return starts.astype(np.int8)


def _mark(pieces: list[str]) -> Callable[[str], bool]:
    if any(piece.startswith(INSIDE) and piece != INSIDE for piece in pieces):
        return lambda piece: not piece.startswith(INSIDE)
    for space in SPACES:
        if any(piece.startswith(space) and len(piece) > 1 for piece in pieces):
            return lambda piece: piece.startswith(space)
    raise InputError(
        "the pieces of this tokenizer do not say where words begin, so whole words cannot be hidden. Use a WordPiece, "
        'byte-level or SentencePiece vocabulary, or the unit "token" or "span".'
    )
