"""Check entities and answers: boundaries inside words, and ids that occur twice."""

from __future__ import annotations

from regard.data.check.collect import FindingCollector, excerpt
from regard.data.check.row_store import stable_hash
from regard.data.check.rules.checked_row import CheckedRow
from regard.data.records import AnswerRecord, TagRecord


class SpanRule:
    """Checks the entities and answers of every row."""

    def __init__(self, collector: FindingCollector) -> None:
        self.collector = collector
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
            if starts_or_ends_inside_word(text, start, end):
                around = text[max(start - 15, 0) : end + 15]
                subject = f'the entity "{excerpt(text[start:end], 40)}" ({label})'
                message = f'{subject} starts or ends inside a word: "…{excerpt(around, 60)}…"'
                self.collector.add("entity-inside-word", row.place, message, text=text, split=row.split)

    def _answers(self, row: CheckedRow, record: AnswerRecord) -> None:
        for answer in record.answers or ():
            end = answer.start + len(answer.text)
            if starts_or_ends_inside_word(record.context, answer.start, end):
                around = excerpt(record.context[max(answer.start - 15, 0) : end + 15], 60)
                message = f'the answer "{excerpt(answer.text, 40)}" starts or ends inside a word: "…{around}…"'
                self.collector.add("answer-inside-word", row.place, message, text=record.question, split=row.split)
        key = stable_hash(f"{row.split}\x1f{record.id}")
        if key in self.ids:
            message = f'the id "{excerpt(record.id, 40)}" occurred before'
            self.collector.add("duplicate-id", row.place, message, text=record.question, split=row.split)
        self.ids.add(key)

    def finish(self) -> None:
        """Nothing to do: findings are added row by row."""


def starts_or_ends_inside_word(text: str, start: int, end: int) -> bool:
    """True if a boundary is between two letters of a script that separates words by spaces."""
    starts_inside = start > 0 and _are_in_one_word(text[start - 1], text[start])
    return starts_inside or (end < len(text) and _are_in_one_word(text[end - 1], text[end]))


def _are_in_one_word(before: str, after: str) -> bool:
    return before.isalpha() and after.isalpha() and before < "\u0e00" and after < "\u0e00"
