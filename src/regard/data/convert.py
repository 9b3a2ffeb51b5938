"""Rows to records: which column is what, and values that are what they should be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.data.formats.lines import Row, required_value
from regard.data.labels import LabelStyle, parse_json_cell, parse_label
from regard.data.labels import describe_value as _shown
from regard.data.records import (
    AnswerRecord,
    AnswerSpan,
    ClassifyRecord,
    DocumentRecord,
    Label,
    MinimalRecord,
    PairRecord,
    Record,
    TagRecord,
    TranslateRecord,
)
from regard.data.spans import as_entity

Columns = Mapping[str, str]
Make = Callable[[Row], Record]


def maker(task: str, columns: Columns, *, style: LabelStyle | None = None, scheme: str = "iob2") -> Make:
    """What makes the records of a task. `style` is how labels are written, `scheme` how tags are."""
    style = style or LabelStyle()
    if task == "classify":
        return classify(columns, style)
    if task == "pair":
        return pair(columns, style)
    if task == "tag":
        return tag(columns, scheme)
    return {"answer": answer, "translate": translate, "text": document, "minimal": minimal}[task](columns)


def classify(columns: Columns, style: LabelStyle) -> Make:
    text = columns["text"]

    def make(row: Row) -> Record:
        return ClassifyRecord(_text(row, text), _label(row, columns, style), _group(row, columns), row.place)

    return make


def pair(columns: Columns, style: LabelStyle) -> Make:
    first, second = columns["first"], columns["second"]

    def make(row: Row) -> Record:
        texts = _text(row, first), _text(row, second)
        return PairRecord(*texts, _label(row, columns, style), _group(row, columns), row.place)

    return make


def translate(columns: Columns) -> Make:
    within, source, target = columns.get("translation"), columns["source"], columns["target"]

    def make(row: Row) -> Record:
        if within is None:
            return TranslateRecord(_text(row, source), _text(row, target), _group(row, columns), row.place)
        inner = required_value(row, within)
        if not isinstance(inner, dict):
            expected = f'an object such as {{"{source}": "…", "{target}": "…"}}'
            raise row.place.error(f"is {_shown(inner)}", column=within, expected=expected)
        nested = Row(row.place, {f"{within}.{name}": value for name, value in inner.items()}, row.raw)
        texts = _text(nested, f"{within}.{source}"), _text(nested, f"{within}.{target}")
        return TranslateRecord(*texts, _group(row, columns), row.place)

    return make


def document(columns: Columns) -> Make:
    text = columns["text"]

    def make(row: Row) -> Record:
        continues = row.values.get("continues") is True
        return DocumentRecord(_text(row, text), continues, _group(row, columns), row.place)

    return make


def minimal(columns: Columns) -> Make:
    names = columns["good"], columns["bad"]

    def make(row: Row) -> Record:
        good, bad = (_text(row, name) for name in names)
        for name, text in zip(names, (good, bad), strict=True):
            if not text.strip():
                raise row.place.error("there is no sentence here", column=name, expected="a text")
        if good == bad:
            raise row.place.error("the two sentences are the same", fix="Leave it out: there is nothing to prefer.")
        kind = row.values.get(columns.get("kind", ""))
        return MinimalRecord(good, bad, None if kind is None else str(kind), _group(row, columns), row.place)

    return make


def tag(columns: Columns, scheme: str) -> Make:
    if "entities" in columns:
        return _entities(columns)
    tokens, tags = columns["tokens"], columns.get("tags")

    def make(row: Row) -> Record:
        kinds = None if tags is None or row.values.get(tags) is None else _strings(row, tags)
        return TagRecord.from_tokens(
            _strings(row, tokens),
            kinds,
            scheme=scheme,
            group=_group(row, columns),
            place=row.place,
            lines=row.values.get("line") if tokens.isdigit() else None,
        )

    return make


def _entities(columns: Columns) -> Make:
    text, marked = columns["text"], columns["entities"]

    def make(row: Row) -> Record:
        given = parse_json_cell(required_value(row, marked))
        if not isinstance(given, list):
            expected = 'a list such as [{"start": 0, "end": 5, "label": "PER"}]'
            raise row.place.error(f"is {_shown(given)}", column=marked, expected=expected)
        whole = _text(row, text)
        found = [as_entity(row, one, f"{marked}[{number}]", whole) for number, one in enumerate(given)]
        return TagRecord.from_entities(whole, found, group=_group(row, columns), place=row.place)

    return make


def answer(columns: Columns) -> Make:
    context, question = columns["context"], columns["question"]

    def make(row: Row) -> Record:
        whole = _text(row, context)
        named = row.values.get(columns.get("id", "id"))
        number = row.place.row if row.place.line is None else row.place.line
        return AnswerRecord(
            id=str(number) if named is None else str(named),
            context=whole,
            question=_text(row, question),
            answers=_answers(row, columns, whole),
            group=_group(row, columns),
            place=row.place,
        )

    return make


def _answers(row: Row, columns: Columns, context: str) -> tuple[AnswerSpan, ...] | None:
    """From SQuAD's list, the hub's {"text": [...], "answer_start": [...]}, or a text with or without its start."""
    column = columns.get("answers")
    impossible = row.values.get(columns.get("impossible", "is_impossible"))
    none = impossible is True or str(impossible).lower() in ("true", "1")
    given = None if column is None else parse_json_cell(required_value(row, column))
    if given is None or column is None:
        return () if none else None
    pairs = _answer_pairs(row, given, column, columns)
    if none and pairs:
        raise row.place.error("the question is marked impossible, but has answers", column=column, expected="no answer")
    if impossible is not None and not none and not pairs:
        raise row.place.error("the question is marked possible, but has no answer", column=column)
    return tuple(_placed(row, text, start, context, column) for text, start in pairs)


def _answer_pairs(row: Row, given: Any, column: str, columns: Columns) -> list[tuple[Any, Any]]:
    if isinstance(given, str):
        start = row.values.get(columns.get("start", "answer_start"))
        return [(given, None if start in (None, "") else start)] if given else []
    if isinstance(given, dict):
        texts, starts = given.get("text"), given.get("answer_start", given.get("start"))
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            return list(zip(texts, starts, strict=True))
        given = [given]
    if not isinstance(given, list) or not all(isinstance(one, dict | str) for one in given):
        expected = 'a list such as [{"text": "…", "answer_start": 0}]'
        raise row.place.error(f"is {_shown(given)}", column=column, expected=expected)
    return [
        (one, None) if isinstance(one, str) else (one.get("text"), one.get("answer_start", one.get("start")))
        for one in given
    ]


def _placed(row: Row, text: Any, start: Any, context: str, column: str) -> AnswerSpan:
    """An answer that stands where it says, or that stands in one place only."""
    if not isinstance(text, str) or not text:
        raise row.place.error(f"an answer is {_shown(text)}", column=column, expected="a text that is not empty")
    if isinstance(start, str):
        with contextlib.suppress(ValueError):
            start = int(start)
    first = context.find(text)
    if start is None and first >= 0 and context.find(text, first + 1) < 0:
        return AnswerSpan(text, first)
    if start is None:
        times = "more than once" if first >= 0 else "nowhere"
        raise row.place.error(
            f'the answer "{text:.40}" stands {times} in the context', column=column, expected="its start"
        )
    if not isinstance(start, int) or isinstance(start, bool):
        raise row.place.error(f"the start of an answer is {_shown(start)}", column=column, expected="a whole number")
    if start < 0 or not context.startswith(text, start):
        there = f'"{context[start : start + len(text)]:.40}"' if 0 <= start < len(context) else "outside the context"
        near = min(_occurrences(context, text), key=lambda at: abs(at - start), default=None)
        fix = "It is nowhere in the context." if near is None else f"It stands at {near}."
        raise row.place.error(f'the answer "{text:.40}" is not at {start}: there is {there}', column=column, fix=fix)
    return AnswerSpan(text, start)


def _occurrences(context: str, text: str) -> list[int]:
    found, at = [], context.find(text)
    while at >= 0:
        found.append(at)
        at = context.find(text, at + len(text))
    return found


def _text(row: Row, column: str) -> str:
    value = required_value(row, column)
    if not isinstance(value, str):
        raise row.place.error(f"is {_shown(value)}", column=column, expected="a text")
    return value


def _strings(row: Row, column: str) -> Sequence[str]:
    value = parse_json_cell(required_value(row, column))
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, list):
        raise row.place.error(f"is {_shown(value)}", column=column, expected="a list of strings")
    for number, one in enumerate(value):
        if not isinstance(one, str):
            fix = "Write the names of tags, not their numbers." if isinstance(one, int) else None
            raise row.place.error(f"is {_shown(one)}", column=f"{column}[{number}]", expected="a string", fix=fix)
    return value


def _group(row: Row, columns: Columns) -> str | None:
    return str(required_value(row, columns["group"])) if "group" in columns else None


def _label(row: Row, columns: Columns, style: LabelStyle) -> Label | None:
    column = columns.get("label")
    return None if column is None else parse_label(row, column, style)
