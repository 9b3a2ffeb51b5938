"""Words and punctuation of a text, by character."""

from __future__ import annotations

import re
import unicodedata

PIECE = re.compile(r"\w+|[^\w\s]")
CONTINUES = ("Mn", "Mc", "Me", "Cf")  # categories: accents and vowel signs, characters without a shape of their own
JOINER = "\u200d"  # of two emoji, or letters


def word_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Start and end of each word and each punctuation character in a part of a text.

    A combining mark (an accent, a vowel sign) or a character without a shape of its own (a joiner) belongs to the
    character before it, and a word goes on after it.
    """
    pieces = [match.span() for match in PIECE.finditer(text, start, len(text) if end is None else end)]
    if text.isascii():
        return pieces
    spans: list[tuple[int, int]] = []
    for first, last in pieces:
        if spans and spans[-1][1] == first and _belong_together(text, spans[-1], first):
            spans[-1] = spans[-1][0], last
        else:
            spans.append((first, last))
    return spans


def after_marks(text: str, end: int) -> int:
    """The position after the combining marks that follow a position: a tokenizer that strips them stops before."""
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


def _belong_together(text: str, span: tuple[int, int], at: int) -> bool:
    """Whether the characters from `at` on belong to the span that ends there."""
    if _continues(text[at]):
        return True
    begins, ends = text[span[0]], text[span[1] - 1]
    return _continues(ends) and (ends == JOINER or (_is_letter(begins) and _is_letter(text[at])))


def _continues(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) in CONTINUES


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"
