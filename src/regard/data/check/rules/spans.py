"""Checks of what is marked in a text: entities and answers that cut a word, or take in too much."""

from __future__ import annotations

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.row_store import stable_hash
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.records import AnswerRecord, TagRecord

EDGES = frozenset(',;:!?"“”„«»<>|')
LONG = 25  # words


class SpanRule:
    """Entities and answers of every row."""

    def __init__(self, gather: FindingCollector) -> None:
        self.gather = gather
        self.ids: set[int] = set()

    def check_row(self, row: CheckedRow) -> None:
        record = row.record
        if isinstance(record, TagRecord):
            self._entities(row, record)
        elif isinstance(record, AnswerRecord):
            self._answers(row, record)

    def _entities(self, row: CheckedRow, record: TagRecord) -> None:
        text = record.text
        for start, end, label in record.entities:
            shows = f'the entity "{excerpt(text[start:end], 40)}" ({label})'
            if cuts(text, start, end):
                around = text[max(start - 15, 0) : end + 15]
                what = f'{shows} is a part of a word: "…{excerpt(around, 60)}…"'
                self.gather.add("entity-cut", row.place, what, text=text, split=row.split)
            elif end - start > 1 and (text[start] in EDGES or text[end - 1] in EDGES):
                what = f"{shows} has punctuation at an edge"
                self.gather.add("entity-edge", row.place, what, text=text, split=row.split)
            if end - start > 2 * LONG and text.count(" ", start, end) >= LONG:
                words = text.count(" ", start, end) + 1
                self.gather.add("long-entity", row.place, f"{shows} has {words} words", text=text, split=row.split)

    def _answers(self, row: CheckedRow, record: AnswerRecord) -> None:
        for answer in record.answers or ():
            end = answer.start + len(answer.text)
            if cuts(record.context, answer.start, end):
                around = excerpt(record.context[max(answer.start - 15, 0) : end + 15], 60)
                what = f'the answer "{excerpt(answer.text, 40)}" is a part of a word: "…{around}…"'
                self.gather.add("answer-cut", row.place, what, text=record.question, split=row.split)
            if answer.text != answer.text.strip():
                what = f"the answer {answer.text[:40]!r} begins or ends with a space"
                self.gather.add("answer-edge", row.place, what, text=record.question, split=row.split)
        key = stable_hash(f"{row.split}\x1f{record.id}")
        if key in self.ids:
            what = f'the id "{excerpt(record.id, 40)}" was there before'
            self.gather.add("duplicate-id", row.place, what, text=record.question, split=row.split)
        self.ids.add(key)

    def finish(self) -> None:
        """Everything was said on the way."""


def cuts(text: str, start: int, end: int) -> bool:
    """Whether an edge lies between two letters, in a script that parts its words by spaces."""
    left = start > 0 and _inside(text[start - 1], text[start])
    return left or (end < len(text) and _inside(text[end - 1], text[end]))


def _inside(before: str, after: str) -> bool:
    return before.isalpha() and after.isalpha() and before < "\u0e00" and after < "\u0e00"
