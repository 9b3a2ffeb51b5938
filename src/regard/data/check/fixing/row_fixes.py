"""Mends of one row, each of which says what it has done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.check.rules.encoding import clean
from regard.data.records import record_types
from regard.data.rows import parse_json_cell
from regard.data.schema import Schema


def fixed_row(values: Mapping[str, Any], found: Schema, changes: Counter[str]) -> dict[str, Any]:
    """The same row with its texts, labels, tags, entities and answers fixed where that is safe."""
    new = dict(values)
    columns = found.columns
    if "entities" in columns:
        _entities(new, columns, changes)
    elif found.task == "answer":
        _answers(new, columns, changes)
    else:
        _texts(new, found, changes)
    if found.task in ("classify", "pair") and isinstance(new.get(columns.get("label", "")), str):
        _label(new, columns["label"], changes)
    if found.task == "tag" and "tags" in columns and found.scheme == "iob2":
        _tags(new, columns["tags"], changes)
    return new


def _texts(new: dict[str, Any], found: Schema, changes: Counter[str]) -> None:
    within = found.columns.get("translation")
    holder = new.get(within) if within is not None else new
    if not isinstance(holder, dict):
        return
    holder = dict(holder) if within is not None else holder
    for role in record_types()[found.task].text_fields:
        name = found.columns.get(role, "")
        if isinstance(holder.get(name), str):
            holder[name] = _clean(holder[name], changes)
    if within is not None:
        new[within] = holder


def _clean(text: str, changes: Counter[str]) -> str:
    fixed = clean(text)
    if fixed != text:
        changes["texts freed from damage of encodings"] += 1
    return fixed


def _label(new: dict[str, Any], column: str, changes: Counter[str]) -> None:
    trimmed = new[column].strip()
    if trimmed and trimmed != new[column]:
        changes["labels freed from spaces"] += 1
        new[column] = trimmed


def _tags(new: dict[str, Any], column: str, changes: Counter[str]) -> None:
    """Entities that are carried on but were never opened are opened."""
    given = new.get(column)
    tags = given.split() if isinstance(given, str) else given
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return
    opened = list(tags)
    for number, tag in enumerate(tags):
        before = opened[number - 1] if number else "O"
        if tag.startswith("I-") and (before == "O" or before[2:] != tag[2:]):
            opened[number] = f"B-{tag[2:]}"
            changes["entities opened with B-"] += 1
    new[column] = " ".join(opened) if isinstance(given, str) else opened


def _entities(new: dict[str, Any], columns: Mapping[str, str], changes: Counter[str]) -> None:
    """Spaces at the edges go; then the text is fixed, if every entity can follow."""
    text, marked = new.get(columns["text"]), new.get(columns["entities"])
    written = isinstance(marked, str)
    with_list = parse_json_cell(marked)
    if not isinstance(text, str) or not isinstance(with_list, list):
        return
    trimmed = [_trimmed(one, text, changes) for one in with_list]
    moved = _moved(text, [(one, "start", "end") for one in trimmed if isinstance(one, dict)])
    if moved is not None:
        changes["texts freed from damage of encodings"] += 1
        new[columns["text"]] = clean(text)
        trimmed = moved
    if trimmed != with_list:
        new[columns["entities"]] = json.dumps(trimmed, ensure_ascii=False) if written else trimmed


def _trimmed(entity: Any, text: str, changes: Counter[str]) -> Any:
    if not isinstance(entity, dict) or not _ints(entity.get("start"), entity.get("end")):
        return entity
    start, end = entity["start"], entity["end"]
    inner = text[start:end]
    if not 0 <= start < end <= len(text) or not inner.strip() or inner == inner.strip():
        return entity
    changes["entities freed from spaces at an edge"] += 1
    left = start + len(inner) - len(inner.lstrip())
    fixed = {**entity, "start": left, "end": left + len(inner.strip())}
    if isinstance(entity.get("text"), str):
        fixed["text"] = inner.strip()
    return fixed


def _ints(*values: Any) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _moved(text: str, spans: Sequence[tuple[dict[str, Any], str, str]]) -> list[dict[str, Any]] | None:
    """The spans in the fixed text; None where it needs no fix, or where a span cannot follow."""
    fixed = clean(text)
    if fixed == text:
        return None
    found = []
    for span, first, last in spans:
        if not _ints(span.get(first), span.get(last)):
            return None
        start, end = len(clean(text[: span[first]])), len(clean(text[: span[last]]))
        if fixed[start:end] != clean(text[span[first] : span[last]]) or start == end:
            return None
        moved = {**span, first: start, last: end}
        if isinstance(span.get("text"), str):
            moved["text"] = fixed[start:end]
        found.append(moved)
    return found


def _answers(new: dict[str, Any], columns: Mapping[str, str], changes: Counter[str]) -> None:
    """A start that is wrong is set right where the answer stands in one place only."""
    context, column = new.get(columns["context"]), columns.get("answers")
    given = parse_json_cell(new.get(column)) if column is not None else None
    if not isinstance(context, str) or not isinstance(given, list) or column is None:
        return
    fixed = [_placed(one, context, changes) for one in given]
    if fixed != given:
        new[column] = json.dumps(fixed, ensure_ascii=False) if isinstance(new[column], str) else fixed


def _placed(answer: Any, context: str, changes: Counter[str]) -> Any:
    if not isinstance(answer, dict) or not isinstance(answer.get("text"), str) or not answer["text"]:
        return answer
    name = "answer_start" if "answer_start" in answer else "start"
    start, text = answer.get(name), answer["text"]
    if isinstance(start, int) and start >= 0 and context.startswith(text, start):
        return answer
    first = context.find(text)
    if first < 0 or context.find(text, first + 1) >= 0:
        return answer
    changes["answers put where they stand"] += 1
    return {**answer, name: first}
