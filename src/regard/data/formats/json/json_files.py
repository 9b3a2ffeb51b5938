"""JSON: an object a line, a list of objects, or SQuAD's articles. Nested files are read object by object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from regard.data.formats.format import FileStart, Format, Sample, infer_by_columns
from regard.data.formats.json.json_start import is_nested, too_many_parts
from regard.data.formats.json.json_values import MANY_PARTS, JsonValues
from regard.data.formats.lines import check_strings, read_lines, strip_line_end
from regard.data.formats.row_writers import open_json_lines
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.schema import ReadOptions, Schema
from regard.errors import DataError

ESCAPED = re.compile(r"\\u(0000|[dD][89a-fA-F])")


def line_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """JSON lines."""
    for number, line in read_lines(stream, name, on_bad):
        if not line.strip():
            continue
        place = Place(name, number)
        try:
            value = _object(line, place)
        except DataError as error:
            on_bad(error, line)
            continue
        yield Row(place, value, line)


def _object(line: str, place: Place) -> dict[str, Any]:
    if too_many_parts(line):
        raise place.error(MANY_PARTS, kind="not-json")
    try:
        value = json.loads(strip_line_end(line))
        return _checked(value, place, escaped=ESCAPED.search(line) is not None)
    except json.JSONDecodeError as error:
        what = f"is not JSON: {error.msg}"
        expected = 'an object such as {"text": "…"}'
        raise place.error(what, column=str(error.colno), expected=expected, kind="not-json") from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise place.error(f"is not JSON that can be read: {error}", kind="not-json") from error


def _checked(value: Any, place: Place, *, escaped: bool) -> dict[str, Any]:
    if _is_annotated_text(value):
        value = {"text": value[0], **value[1]}
    if not isinstance(value, dict):
        raise place.error(f"is {_kind(value)}", expected='an object such as {"text": "…", "label": "…"}')
    if escaped:
        check_strings(value, place, "")
    return value


def _is_annotated_text(value: Any) -> bool:
    """Whether this is spaCy's [text, {"entities": [...]}]."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], dict)


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "true or false", type(None): "null", dict: "an object"}
    return kinds.get(type(value), "a number")


def item_rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    """The objects of a list, or of the list under "data"; an article of SQuAD is a row for each of its questions."""
    number = 0
    for item in _items(stream, name, on_bad):
        if "paragraphs" not in item.values:
            yield item
            continue
        for values, fault in _questions(item):
            number += 1
            place = item.place._replace(row=number)
            if fault is None:
                yield Row(place, values, "")
            else:
                error = place.error(fault, expected="an article of SQuAD")
                on_bad(error, json.dumps(values, ensure_ascii=False))


def _questions(article: Row) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Every question with its context and the title of its article, or words about a part that is not as in SQuAD."""
    paragraphs, title = article.values["paragraphs"], article.values.get("title")
    title = f"article {article.place.row}" if title is None else title  # its questions belong together all the same
    if not isinstance(paragraphs, list):
        yield article.values, f'"paragraphs" is {_kind(paragraphs)}'
        return
    for paragraph in paragraphs:
        if not isinstance(paragraph, dict) or not isinstance(paragraph.get("qas"), list):
            yield {"paragraph": paragraph}, 'a paragraph has no list of questions ("qas")'
            continue
        for question in paragraph["qas"]:
            if not isinstance(question, dict):
                yield {"question": question}, f"a question is {_kind(question)}"
                continue
            values = {name: value for name, value in question.items() if name != "plausible_answers"}
            if isinstance(paragraph.get("context"), str):
                values["context"] = paragraph["context"]
            yield {**values, "title": title}, None


def _items(stream: BinaryIO, name: str, on_bad: OnBadRow) -> Iterator[Row]:
    for number, (line, value, raw) in enumerate(JsonValues(stream, name), 1):
        place = Place(name, line, number)
        try:
            row = Row(place, _checked(value, place, escaped=ESCAPED.search(raw) is not None), raw)
        except DataError as error:
            on_bad(error, raw)
            continue
        except RecursionError:
            on_bad(place.error("is not JSON that can be read: it is nested too deeply", kind="not-json"), raw)
            continue
        yield row


# Detection and schema


def _is_json_line(start: FileStart) -> bool:
    """Whether the first line is a complete JSON object."""
    first, _, following = start.text.lstrip().partition("\n")
    if not first.startswith("{"):
        return False
    try:
        value = None if too_many_parts(first) else json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and (bool(following.strip()) or not isinstance(value.get("data"), list))


def _sniff_json(start: FileStart) -> str | None:
    if start.suffix in JSONL.suffixes:
        return None
    if _is_json_line(start):
        return None
    if is_nested(start.head):
        return "it is one JSON value that contains rows"
    return "the name ends in .json" if start.suffix == ".json" else None


def _sniff_jsonl(start: FileStart) -> str | None:
    if _is_json_line(start):
        return "the first line is a JSON object"
    if start.suffix in JSONL.suffixes:
        return f"the name ends in {start.suffix}"
    return "it begins as JSON" if start.text.lstrip().startswith('{"') else None


def _infer_json(sample: Sample, schema: Schema, options: ReadOptions) -> Schema:
    if b'"paragraphs"' in sample.start.head:
        return _infer_squad(sample.name, schema, options)
    return infer_by_columns(sample, schema, options)


def _infer_squad(name: str, schema: Schema, options: ReadOptions) -> Schema:
    if options.task not in (None, "answer"):
        raise DataError("is SQuAD, for the task answer", file=name, expected=f"data for {options.task}")
    columns = {"id": "id", "context": "context", "question": "question", "answers": "answers", "group": "title"}
    return replace(schema, task="answer", columns={**columns, **options.columns}, reason="it is SQuAD's JSON")


JSON = Format("json", suffixes=(".json",), sniff=_sniff_json, rows=item_rows, infer=_infer_json, line_based=False)
JSONL = Format("jsonl", suffixes=(".jsonl", ".ndjson"), sniff=_sniff_jsonl, rows=line_rows, write=open_json_lines)
