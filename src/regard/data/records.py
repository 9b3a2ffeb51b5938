"""Rows of data as records: one kind a task, each knowing the place it came from.

Offsets are code points of the text, end exclusive. `group` names what must stay on one side of a split: an article, a
patient, a user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.data.tags import TagError, entities, to_iob2
from regard.errors import DataError, pluralize

WORD = re.compile(r"\w+|[^\w\s]")


class Place(NamedTuple):
    """Where a row stands: its file, and its line or its number, both counted from 1."""

    file: str
    line: int | None = None
    row: int | None = None

    def error(
        self, message: str, *, column: str | None = None, expected: str | None = None, fix: str | None = None
    ) -> DataError:
        """What is wrong here, as an error to raise."""
        return DataError(
            message, file=self.file, line=self.line, row=self.row, column=column, expected=expected, fix=fix
        )


NOWHERE = Place("a record")

Label = str | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClassifyRecord:
    """A text and its class, its number, or its classes; None where nobody has labelled it."""

    text: str
    label: Label | None = None
    group: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class PairRecord:
    """Two texts and what holds between them."""

    first: str
    second: str
    label: Label | None = None
    group: str | None = None
    place: Place = NOWHERE


class Entity(NamedTuple):
    """A stretch of a text with a name."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TagRecord:
    """A text cut into words, a tag for each: IOB2 for entities. `tags` is None where nobody has tagged it."""

    text: str
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None
    group: str | None = None
    place: Place = NOWHERE

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans)

    @property
    def entities(self) -> tuple[Entity, ...]:
        """The entities with their place in the text."""
        found = entities(self.tags or ())
        return tuple(Entity(self.spans[first][0], self.spans[last - 1][1], label) for first, last, label in found)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[str],
        tags: Sequence[str] | None,
        *,
        scheme: str = "iob2",
        group: str | None = None,
        place: Place = NOWHERE,
        lines: Sequence[int] | None = None,
    ) -> TagRecord:
        """From words and their tags; the text is the words with one space between them. `lines` are for messages."""
        if tags is not None and len(tokens) != len(tags):
            raise place.error(
                f"{pluralize(len(tokens), 'token')} but {pluralize(len(tags), 'tag')}",
                column="tags",
                expected="one a token",
            )
        spans, at = [], 0
        for number, token in enumerate(tokens):
            if not token:
                raise place.error(f"token {number} is empty", column="tokens", fix="Leave it and its tag out.")
            spans.append((at, at + len(token)))
            at += len(token) + 1
        try:
            kept = None if tags is None else to_iob2(tags, scheme)
        except TagError as fault:
            at_word = place if lines is None else place._replace(line=lines[fault.word])
            what = f'token {fault.word} "{tokens[fault.word]}": {fault.message}'
            raise at_word.error(what, column="tags", expected=fault.expected, fix=fault.fix) from fault
        return cls(" ".join(tokens), tuple(spans), kept, group, place)

    @classmethod
    def from_text(cls, text: str, *, group: str | None = None, place: Place = NOWHERE) -> TagRecord:
        """A text that nobody has tagged, cut into words and signs."""
        return cls(text, tuple(_words(text, 0, len(text))), None, group, place)

    @classmethod
    def from_entities(
        cls, text: str, marked: Sequence[Entity], *, group: str | None = None, place: Place = NOWHERE
    ) -> TagRecord:
        """From character spans. A word that a span cuts becomes two, so that no entity is moved or lost."""
        order = sorted(marked)
        _check_entities(text, order, place)
        spans, tags, at = [], [], 0
        for entity in order:
            before = _words(text, at, entity.start)
            inside = _words(text, entity.start, entity.end)
            spans += before + inside
            tags += ["O"] * len(before) + [f"B-{entity.label}"] + [f"I-{entity.label}"] * (len(inside) - 1)
            at = entity.end
        rest = _words(text, at, len(text))
        return cls(text, tuple(spans + rest), tuple(tags + ["O"] * len(rest)), group, place)


def _words(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(text, start, end)]


def _check_entities(text: str, order: Sequence[Entity], place: Place) -> None:
    """Inside the text, not empty, no space at the edges, no two over one another."""
    at = 0
    for entity in order:
        start, end, label = entity
        shown = f"the entity {start} to {end} ({label})"
        if not 0 <= start < end <= len(text):
            expected = f"0 <= start < end <= {len(text)}, the length of the text"
            raise place.error(f"{shown} is not a part of the text", column="entities", expected=expected)
        inner = text[start:end]
        if inner != inner.strip():
            left = start + len(inner) - len(inner.lstrip())
            kept = left + len(inner.strip())
            fix = f"Write {left} to {kept}." if inner.strip() else "Leave it out: it holds only space."
            raise place.error(f"{shown} begins or ends with a space: {inner!r:.60}", column="entities", fix=fix)
        if start < at:
            fix = "Keep one of them: a word has one tag."
            raise place.error(f"{shown} overlaps the one before, which ends at {at}", column="entities", fix=fix)
        at = end


class AnswerSpan(NamedTuple):
    """A stretch of the context that answers a question."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """A question about a context. No answers: there is none in it; None: nobody has said."""

    id: str
    context: str
    question: str
    answers: tuple[AnswerSpan, ...] | None = None
    group: str | None = None
    place: Place = NOWHERE

    @property
    def answerable(self) -> bool | None:
        return None if self.answers is None else bool(self.answers)


@dataclass(frozen=True, slots=True)
class TranslateRecord:
    """A text and its translation."""

    source: str
    target: str
    group: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """Plain text. `continues` says that the document was too long to hold, and that the next record carries it on."""

    text: str
    continues: bool = False
    group: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class MinimalRecord:
    """A sentence, one that is wrong, and the name of what makes it wrong, where there is one."""

    good: str
    bad: str
    kind: str | None = None
    group: str | None = None
    place: Place = NOWHERE


Record = ClassifyRecord | PairRecord | TagRecord | AnswerRecord | TranslateRecord | DocumentRecord | MinimalRecord
