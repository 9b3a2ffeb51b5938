"""Checks of what is marked in a text: entities and answers that cut a word, or take in too much."""

from __future__ import annotations

from regard.data.check.collect import Gather, shown
from regard.data.check.rules.view import Seen
from regard.data.check.store import hashed
from regard.data.records import AnswerRecord, TagRecord

EDGES = frozenset(',;:!?"“”„«»<>|')
LONG = 25  # words


class Spans:
    """Entities and answers of every row."""

    def __init__(self, gather: Gather) -> None:
        self.gather = gather
        self.ids: set[int] = set()

    def see(self, row: Seen) -> None:
        record = row.record
        if isinstance(record, TagRecord):
            self._entities(row, record)
        elif isinstance(record, AnswerRecord):
            self._answers(row, record)

    def _entities(self, row: Seen, record: TagRecord) -> None:
        text = record.text
        for start, end, label in record.entities:
            shows = f'the entity "{shown(text[start:end], 40)}" ({label})'
            if cuts(text, start, end):
                around = text[max(start - 15, 0) : end + 15]
                what = f'{shows} is a part of a word: "…{shown(around, 60)}…"'
                self.gather.note("entity-cut", row.place, what, text=text, split=row.split)
            elif end - start > 1 and (text[start] in EDGES or text[end - 1] in EDGES):
                what = f"{shows} has punctuation at an edge"
                self.gather.note("entity-edge", row.place, what, text=text, split=row.split)
            if end - start > 2 * LONG and text.count(" ", start, end) >= LONG:
                words = text.count(" ", start, end) + 1
                self.gather.note("long-entity", row.place, f"{shows} has {words} words", text=text, split=row.split)

    def _answers(self, row: Seen, record: AnswerRecord) -> None:
        for answer in record.answers or ():
            end = answer.start + len(answer.text)
            if cuts(record.context, answer.start, end):
                around = shown(record.context[max(answer.start - 15, 0) : end + 15], 60)
                what = f'the answer "{shown(answer.text, 40)}" is a part of a word: "…{around}…"'
                self.gather.note("answer-cut", row.place, what, text=record.question, split=row.split)
            if answer.text != answer.text.strip():
                what = f"the answer {answer.text[:40]!r} begins or ends with a space"
                self.gather.note("answer-edge", row.place, what, text=record.question, split=row.split)
        key = hashed(f"{row.split}\x1f{record.id}")
        if key in self.ids:
            what = f'the id "{shown(record.id, 40)}" was there before'
            self.gather.note("duplicate-id", row.place, what, text=record.question, split=row.split)
        self.ids.add(key)

    def end(self) -> None:
        """Everything was said on the way."""


def cuts(text: str, start: int, end: int) -> bool:
    """Whether an edge lies between two letters, in a script that parts its words by spaces."""
    left = start > 0 and _inside(text[start - 1], text[start])
    return left or (end < len(text) and _inside(text[end - 1], text[end]))


def _inside(before: str, after: str) -> bool:
    return before.isalpha() and after.isalpha() and before < "\u0e00" and after < "\u0e00"
