"""Records of questions about a context."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.data.records.record import ColumnMap, Record, Role
from regard.data.rows import Row, describe_value, parse_json_cell


class AnswerSpan(NamedTuple):
    """A part of the context that answers a question: its text and where it starts."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class AnswerRecord(Record):
    """A question about a context. `answers` is empty if the context has no answer, None if it is not labeled."""

    type_name = "answer"
    roles = (
        Role("context", ("context", "passage")),
        Role("question", ("question", "query")),
        Role("answers", ("answers", "answer")),
    )
    required = (("context", "question"),)
    optional = ("answers",)
    text_fields = ("question", "context")

    id: str
    context: str
    question: str
    answers: tuple[AnswerSpan, ...] | None = None

    @property
    def answerable(self) -> bool | None:
        """Whether there is an answer; None if the record is not labeled."""
        return None if self.answers is None else bool(self.answers)

    @classmethod
    def from_row(cls, row: Row, columns: ColumnMap) -> AnswerRecord:
        context = row.text(columns["context"])
        question_id = row.values.get(columns.get("id", "id"))
        number = row.place.row if row.place.line is None else row.place.line
        return cls(
            id=str(number if question_id is None else question_id),
            context=context,
            question=row.text(columns["question"]),
            answers=_answers(row, columns, context),
            group=columns.group(row),
            place=row.place,
        )

    @property
    def annotation(self) -> str:
        return repr(self.answers)

    @property
    def stratum(self) -> str | float:
        return repr(self.answerable)


def _answers(row: Row, columns: ColumnMap, context: str) -> tuple[AnswerSpan, ...] | None:
    """From SQuAD's list, the hub's {"text": [...], "answer_start": [...]}, or a text with or without its start."""
    column = columns.get("answers")
    impossible = row.values.get(columns.get("impossible", "is_impossible"))
    unanswerable = impossible is True or str(impossible).lower() in ("true", "1")
    answers = None if column is None else parse_json_cell(row.value(column))
    if answers is None or column is None:
        return () if unanswerable else None
    pairs = _answer_pairs(row, answers, column, columns)
    if unanswerable and pairs:
        message = "the question is marked impossible, but has answers"
        raise row.place.error(message, column=column, expected="no answer", kind="bad-answer")
    if impossible is not None and not unanswerable and not pairs:
        message = "the question is marked possible, but has no answer"
        raise row.place.error(message, column=column, kind="bad-answer")
    return tuple(_located(row, text, start, context, column) for text, start in pairs)


def _answer_pairs(row: Row, answers: Any, column: str, columns: ColumnMap) -> list[tuple[Any, Any]]:
    if isinstance(answers, str):
        if not answers:
            return []
        start = row.values.get(columns.get("start", "answer_start"))
        return [(answers, None if start in (None, "") else start)]
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start", answers.get("start"))
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return list(zip(texts, starts, strict=True))
        answers = [answers]
    if not isinstance(answers, list) or not all(isinstance(one, dict | str) for one in answers):
        expected = 'a list such as [{"text": "…", "answer_start": 0}]'
        raise row.place.value_error(answers, column=column, expected=expected, kind="bad-answer")
    return [
        (one, None) if isinstance(one, str) else (one.get("text"), one.get("answer_start", one.get("start")))
        for one in answers
    ]


def _located(row: Row, text: Any, start: Any, context: str, column: str) -> AnswerSpan:
    """The answer at its start, which may be missing if the answer occurs only once in the context."""
    if not isinstance(text, str) or not text:
        raise row.place.error(
            f"an answer is {describe_value(text)}",
            column=column,
            expected="a text that is not empty",
            kind="missing-value" if text is None else "bad-answer",
        )
    if isinstance(start, str):
        with contextlib.suppress(ValueError):
            start = int(start)
    first = context.find(text)
    if start is None and first >= 0 and context.find(text, first + 1) < 0:
        return AnswerSpan(text, first)
    if start is None:
        times = "more than once" if first >= 0 else "nowhere"
        raise row.place.error(
            f'the answer "{text:.40}" occurs {times} in the context',
            column=column,
            expected="its start",
            kind="bad-answer",
        )
    if not isinstance(start, int) or isinstance(start, bool):
        raise row.place.error(
            f"the start of an answer is {describe_value(start)}",
            column=column,
            expected="a whole number",
            kind="bad-answer",
        )
    if start < 0 or not context.startswith(text, start):
        there = f'"{context[start : start + len(text)]:.40}"' if 0 <= start < len(context) else "outside the context"
        near = min(_occurrences(context, text), key=lambda at: abs(at - start), default=None)
        fix = "It does not occur in the context." if near is None else f"It occurs at {near}."
        message = f'the answer "{text:.40}" is not at {start}: there is {there}'
        raise row.place.error(message, column=column, fix=fix, kind="answer-position")
    return AnswerSpan(text, start)


def _occurrences(context: str, text: str) -> list[int]:
    starts = []
    start = context.find(text)
    while start >= 0:
        starts.append(start)
        start = context.find(text, start + len(text))
    return starts
