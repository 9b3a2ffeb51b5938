"""Marked parts of a text: entities, in the ways that annotation tools write them.

[start, end, label], {"start", "end", "label"}, {"start_offset", "end_offset", "label"} and Label Studio's {"start",
"end", "labels": [label]} are all read. Offsets are code points, end exclusive; where a span holds its own text, offsets
that were counted in UTF-16 (as browsers do) are found out and converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from regard.data.rows import Row, describe_value

ENDS = ("start", "end"), ("start_offset", "end_offset")
EXAMPLE = '{"start": 0, "end": 5, "label": "PER"}'


class Entity(NamedTuple):
    """A labeled part of a text."""

    start: int
    end: int
    label: str


def is_span(value: Any) -> bool:
    """Whether a value marks a part of a text."""
    if isinstance(value, list):
        return len(value) >= 3 and isinstance(value[2], str) and all(isinstance(end, int) for end in value[:2])
    if not isinstance(value, dict):
        return False
    return any(start in value and end in value for start, end in ENDS) and ("label" in value or "labels" in value)


def parse_span(row: Row, value: Any, column: str, text: str) -> Entity:
    """One span of a row, in any of the ways to write it."""
    span = _as_dict(row, value, column)
    names = ("start_offset", "end_offset") if "start_offset" in span else ("start", "end")
    start, end = (_integer(row, span.get(name), f"{column}.{name}") for name in names)
    label = _span_label(row, span, column)
    expected_text = span.get("text")
    if isinstance(expected_text, str) and text[start:end] != expected_text:
        code_points = _from_utf16(text, start, end)
        if code_points is None or text[slice(*code_points)] != expected_text:
            what = f'says "{expected_text:.40}", but {start} to {end} is "{text[start:end]:.40}"'
            fix = "Count code points from 0, end exclusive."
            raise row.place.error(what, column=column, fix=fix, kind="entity-mismatch")
        start, end = code_points
    return Entity(start, end, label)


def _as_dict(row: Row, value: Any, column: str) -> Mapping[str, Any]:
    if isinstance(value, list) and len(value) >= 3:
        return dict(zip(("start", "end", "label"), value, strict=False))
    if isinstance(value, dict):
        return value
    raise row.place.value_error(value, column=column, expected=f'{EXAMPLE} or [0, 5, "PER"]', kind="bad-entity")


def _integer(row: Row, value: Any, column: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise row.place.value_error(value, column=column, expected="a whole number", kind="bad-entity")
    return value


def _span_label(row: Row, span: Mapping[str, Any], column: str) -> str:
    label = span.get("label")
    if "label" not in span and isinstance(span.get("labels"), list):
        if len(span["labels"]) != 1:
            what = f"has {len(span['labels'])} labels: {describe_value(span['labels'])}"
            raise row.place.error(what, column=column, expected="one label for each span", kind="bad-entity")
        label = span["labels"][0]
    if not isinstance(label, str) or not label:
        raise row.place.value_error(label, column=f"{column}.label", expected="a name, such as PER", kind="bad-entity")
    return label


def _from_utf16(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Offsets counted by a browser, in code points; None where they are not inside the text."""
    units = text.encode("utf-16-le")
    if not 0 <= start <= end <= len(units) // 2:
        return None
    before, inside = units[: 2 * start], units[2 * start : 2 * end]
    try:
        first = len(before.decode("utf-16-le"))
        return first, first + len(inside.decode("utf-16-le"))
    except UnicodeDecodeError:
        return None
