"""Where words begin among tokens, by what a tokenizer writes into its pieces: what whole-word masking goes by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import InputError
from regard.text.tokenizer import Tokenizer

BEGINS = "begins"  # of each token: 1 where a word begins with it
INSIDE = "##"  # WordPiece marks what goes on inside a word; the others mark the space before one
SPACES = ("Ġ", "▁")  # as byte-level pairs and as SentencePiece write it
BLANK = set("ĠĊĉč▁ \t\n\r")  # all that pieces of mere space are made of


@dataclass(frozen=True, eq=False)
class WordStarts:
    """Which tokens begin a word, and which stand between words, so that the next begins one."""

    begins_V: npt.NDArray[np.bool_]
    between_V: npt.NDArray[np.bool_]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> WordStarts:
        """From the pieces of a vocabulary; refused where they do not tell."""
        pieces = tokenizer.backend.get_vocab()
        begins = _mark(list(pieces))
        size, special = max(pieces.values()) + 1, set(tokenizer.special.values())
        begins_V, between_V = np.ones(size, bool), np.zeros(size, bool)
        for piece, number in pieces.items():
            between_V[number] = number in special or set(piece) <= BLANK
            begins_V[number] = between_V[number] or begins(piece)
        return cls(begins_V, between_V)

    def __call__(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """1 for each of these flat tokens that begins a word; special tokens and spaces stand alone."""
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
