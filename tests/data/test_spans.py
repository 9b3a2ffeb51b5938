"""Spans in the notations of annotation tools."""

import pytest

from regard.data.rows import Place, Row
from regard.data.spans import Entity, is_span, parse_span
from regard.errors import DataError

TEXT = "😀 Ada met Bo"
ROW = Row(Place("a.jsonl", 3), {}, "")


@pytest.mark.parametrize(
    "span",
    [
        [2, 5, "PER"],
        {"start": 2, "end": 5, "label": "PER"},
        {"start_offset": 2, "end_offset": 5, "label": "PER"},
        {"start": 2, "end": 5, "labels": ["PER"]},
        {"start": 3, "end": 6, "label": "PER", "text": "Ada"},  # counted in UTF-16
    ],
)
def test_every_notation_is_read(span):
    assert is_span(span)
    assert parse_span(ROW, span, "entities", TEXT) == Entity(2, 5, "PER")


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("PER", r'line 3, column entities: is "PER"'),
        ({"start": 2.0, "end": 5, "label": "PER"}, "expected a whole number"),
        ({"start": 2, "end": 5, "labels": ["PER", "LOC"]}, "expected one label for each span"),
        ({"start": 0, "end": 3, "label": "PER", "text": "Bo"}, 'says "Bo", but 0 to 3 is'),
    ],
)
def test_invalid_spans_are_refused(span, message):
    with pytest.raises(DataError, match=message):
        parse_span(ROW, span, "entities", TEXT)
