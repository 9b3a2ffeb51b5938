"""Safe fixes of one row. Each fix counts what it changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.check.rules.mojibake import clean
from regard.data.records import record_types
from regard.data.rows import parse_json_cell
from regard.data.schema.schema import Schema


def fixed_row(values: Mapping[str, Any], schema: Schema, changes: Counter[str]) -> dict[str, Any]:
    """The row with its texts, labels, tags, entities and answers fixed; `changes` counts the fixes."""
    row = dict(values)
    columns = schema.columns
    if "entities" in columns:
        _fix_entities(row, columns, changes)
    elif schema.task == "answer":
        _fix_answers(row, columns, changes)
    else:
        _fix_texts(row, schema, changes)
    if schema.task in ("classify", "pair") and isinstance(row.get(columns.get("label", "")), str):
        _fix_label(row, columns["label"], changes)
    if schema.task == "tag" and "tags" in columns and schema.scheme == "iob2":
        _fix_tags(row, columns["tags"], changes)
    return row


def _fix_texts(row: dict[str, Any], schema: Schema, changes: Counter[str]) -> None:
    """Repair encoding damage in the texts. Some translations are in an object in one column."""
    column = schema.columns.get("translation")
    texts = row if column is None else row.get(column)
    if not isinstance(texts, dict):
        return
    if column is not None:
        texts = dict(texts)
        row[column] = texts
    for role in record_types()[schema.task].text_fields:
        name = schema.columns.get(role, "")
        if isinstance(texts.get(name), str):
            texts[name] = _clean(texts[name], changes)


def _clean(text: str, changes: Counter[str]) -> str:
    fixed = clean(text)
    if fixed != text:
        changes["texts with encoding damage repaired"] += 1
    return fixed


def _fix_label(row: dict[str, Any], column: str, changes: Counter[str]) -> None:
    trimmed = row[column].strip()
    if trimmed and trimmed != row[column]:
        changes["labels with spaces around them trimmed"] += 1
        row[column] = trimmed


def _fix_tags(row: dict[str, Any], column: str, changes: Counter[str]) -> None:
    """Start entities with B- whose first tag is I-."""
    value = row.get(column)
    tags = value.split() if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return
    fixed = list(tags)
    for number, tag in enumerate(tags):
        previous = fixed[number - 1] if number else "O"
        if tag.startswith("I-") and (previous == "O" or previous[2:] != tag[2:]):
            fixed[number] = f"B-{tag[2:]}"
            changes["entities started with B-"] += 1
    row[column] = " ".join(fixed) if isinstance(value, str) else fixed


def _fix_entities(row: dict[str, Any], columns: Mapping[str, str], changes: Counter[str]) -> None:
    """Trim spaces at boundaries; then repair the text, if the position of every entity in it is certain."""
    text = row.get(columns["text"])
    value = row.get(columns["entities"])
    entities = parse_json_cell(value)
    if not isinstance(text, str) or not isinstance(entities, list):
        return
    trimmed = [_trimmed(entity, text, changes) for entity in entities]
    moved = _moved(text, [entity for entity in trimmed if isinstance(entity, dict)])
    if moved is not None:
        changes["texts with encoding damage repaired"] += 1
        row[columns["text"]] = clean(text)
        trimmed = moved
    if trimmed != entities:
        row[columns["entities"]] = json.dumps(trimmed, ensure_ascii=False) if isinstance(value, str) else trimmed


def _trimmed(entity: Any, text: str, changes: Counter[str]) -> Any:
    """The entity without spaces at its boundaries."""
    if not isinstance(entity, dict) or not _are_ints(entity.get("start"), entity.get("end")):
        return entity
    start = entity["start"]
    end = entity["end"]
    content = text[start:end]
    if not 0 <= start < end <= len(text) or not content.strip() or content == content.strip():
        return entity
    changes["entities with spaces at a boundary trimmed"] += 1
    left = start + len(content) - len(content.lstrip())
    fixed = {**entity, "start": left, "end": left + len(content.strip())}
    if isinstance(entity.get("text"), str):
        fixed["text"] = content.strip()
    return fixed


def _are_ints(*values: Any) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in values)


def _moved(text: str, entities: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The entities at their positions in the repaired text; None if it needs no repair or a position is uncertain."""
    repaired = clean(text)
    if repaired == text:
        return None
    moved = []
    for entity in entities:
        if not _are_ints(entity.get("start"), entity.get("end")):
            return None
        start = len(clean(text[: entity["start"]]))
        end = len(clean(text[: entity["end"]]))
        if repaired[start:end] != clean(text[entity["start"] : entity["end"]]) or start == end:
            return None
        new_entity = {**entity, "start": start, "end": end}
        if isinstance(entity.get("text"), str):
            new_entity["text"] = repaired[start:end]
        moved.append(new_entity)
    return moved


def _fix_answers(row: dict[str, Any], columns: Mapping[str, str], changes: Counter[str]) -> None:
    """Correct wrong starts of answers that occur once in the context."""
    context = row.get(columns["context"])
    column = columns.get("answers")
    answers = None if column is None else parse_json_cell(row.get(column))
    if not isinstance(context, str) or not isinstance(answers, list) or column is None:
        return
    fixed = [_with_start(answer, context, changes) for answer in answers]
    if fixed != answers:
        row[column] = json.dumps(fixed, ensure_ascii=False) if isinstance(row[column], str) else fixed


def _with_start(answer: Any, context: str, changes: Counter[str]) -> Any:
    """The answer with its start corrected if it is wrong and the right one is certain."""
    if not isinstance(answer, dict) or not isinstance(answer.get("text"), str) or not answer["text"]:
        return answer
    name = "answer_start" if "answer_start" in answer else "start"
    start = answer.get(name)
    text = answer["text"]
    if isinstance(start, int) and start >= 0 and context.startswith(text, start):
        return answer
    first = context.find(text)
    if first < 0 or context.find(text, first + 1) >= 0:
        return answer
    changes["starts of answers corrected"] += 1
    return {**answer, name: first}
