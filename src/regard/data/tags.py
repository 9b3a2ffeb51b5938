"""Tag schemes of words: entities in IOB1, IOB2, IOBES and BILOU, converted to IOB2.

In IOB2 `B-PER` begins an entity, `I-PER` continues it, and `O` is outside. IOB1 uses `B-` only between two adjacent
entities of one type; IOBES and BILOU have further letters for the last word and for entities of one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from regard.errors import DataError, InputError, did_you_mean

SCHEMES = ("iob1", "iob2", "iobes", "bilou", "plain")
TAG = re.compile(r"O|[BIESLU]-.+", re.DOTALL)
LETTERS = {"iob1": "BI", "iob2": "BI", "iobes": "BIES", "bilou": "BILU"}


class TagError(DataError):
    """A tag that is not allowed at its position; `word` is the index of the word in its sentence."""

    def __init__(self, what: str, word: int, *, expected: str | None = None, fix: str | None = None) -> None:
        super().__init__(what, expected=expected, fix=fix)
        self.word = word


def infer_scheme(sequences: Iterable[Sequence[str]]) -> str:
    """How these tags are written; `plain` where they are no entities, such as parts of speech."""
    letters: set[str] = set()
    continued = True  # every I- follows a tag of the same entity type
    opened = True  # every B- separates two entities of the same type
    for tags in sequences:
        if not all(TAG.fullmatch(tag) for tag in tags):
            return "plain"
        letters.update(tag[0] for tag in tags)
        for before, tag in pairwise(["O", *tags]):
            same = tag[1:] == before[1:] and before != "O"
            continued &= same or tag[0] != "I"
            opened &= same or tag[0] != "B"
    if letters & set("LU"):
        return "bilou"
    if letters & set("ES"):
        return "iobes"
    return "iob1" if opened and not continued else "iob2"


def normalize_scheme(written: str) -> str:
    """The name of a scheme, or words about it."""
    name = {"bio": "iob2", "iob": "iob1", "bioes": "iobes", "biolu": "bilou"}.get(written.lower(), written.lower())
    if name not in SCHEMES:
        raise InputError(f'"{written}" is not a tag scheme.{did_you_mean(written, SCHEMES)}')
    return name


def to_iob2(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """The same entities in IOB2. What the scheme does not allow is a TagFault."""
    if scheme == "plain":
        return tuple(tags)
    converted = []
    before = "O"
    for number, tag in enumerate(tags):
        if tag == "O":
            if before[0] in _unfinished(scheme):
                raise TagError(f'"O" comes after "{before}", but that entity is not closed', number)
            converted.append(tag)
        else:
            opening = _opens(tags, number, before, scheme)
            converted.append(("B" if opening else "I") + tag[1:])
        before = tag
    if before[0] in _unfinished(scheme):
        raise TagError(f'"{before}" is the last tag of the sentence, but its entity is not closed', len(tags) - 1)
    return tuple(converted)


def _unfinished(scheme: str) -> str:
    return "BI" if scheme in ("iobes", "bilou") else ""


def _opens(tags: Sequence[str], number: int, before: str, scheme: str) -> bool:
    """Whether a tag begins an entity. Raises TagError if it is not allowed at its position."""
    tag = tags[number]
    letter, same = tag[:1], before != "O" and before[1:] == tag[1:]
    if TAG.fullmatch(tag) is None or letter not in LETTERS[scheme]:
        letters = ", ".join(f'"{one}-…"' for one in LETTERS[scheme])
        raise TagError(f'"{tag}" is no tag of the scheme {scheme}', number, expected=f'"O", {letters}')
    if scheme == "iob1":
        return letter == "B" or not same
    inside = letter in "IEL"
    going = before[0] in (_unfinished(scheme) or "BI")
    if inside and not (same and going):
        fix = "Open it with B-, or read the file as IOB1 (scheme iob1)." if scheme == "iob2" else None
        raise TagError(f'"{tag}" continues an entity, but comes after "{before}"', number, fix=fix)
    if not inside and scheme != "iob2" and before != "O" and going:
        raise TagError(f'"{tag}" opens an entity, but the one of "{before}" is not closed', number)
    return not inside


def entities(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """First word, last word (exclusive) and label of each entity of IOB2 tags."""
    spans: list[tuple[int, int, str]] = []
    for number, tag in enumerate(tags):
        if tag.startswith("B-"):
            spans.append((number, number + 1, tag[2:]))
        elif tag.startswith("I-") and spans:
            first, _, label = spans[-1]
            spans[-1] = (first, number + 1, label)
    return spans
