"""The words of a text in any script, as character spans."""

from __future__ import annotations

import unicodedata

APOSTROPHES = "'’"
NUMBER_MARKS = ".,"
JOINERS = "\u200c\u200d"  # zero-width, inside words and between the parts of an emoji
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, and those of Chinese and Japanese.
UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x312F),
    (0x31A0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Words with their apostrophes and marks, numbers with their points; every other character is its own word."""
    spans: list[tuple[int, int]] = []
    in_word = False
    for i, character in enumerate(text):
        joined = bool(spans) and spans[-1][1] == i
        if (in_word and joined and _continues(text, i)) or (joined and _is_mark(character)):
            spans[-1] = (spans[-1][0], i + 1)
        elif not character.isspace():
            spans.append((i, i + 1))
            in_word = _is_letter(character)
        else:
            in_word = False
    return spans


def is_unspaced(text: str) -> bool:
    """Whether a text has characters of a script without spaces between words."""
    return any(first <= ord(character) <= last for character in text for first, last in UNSPACED)


def _is_letter(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_mark(character: str) -> bool:
    return character in JOINERS or unicodedata.category(character).startswith("M")


def _continues(text: str, i: int) -> bool:
    """Whether a character inside a word belongs to it."""
    if _is_letter(text[i]):
        return True
    following = text[i + 1 : i + 2]
    if text[i] in APOSTROPHES:
        return following.isalnum()
    return text[i] in NUMBER_MARKS and text[i - 1].isdigit() and following.isdigit()
