"""Documents and minimal pairs."""

import pytest

from regard.data.records import DocumentRecord, MinimalRecord
from regard.data.records.record import ColumnMap
from regard.data.rows import Place, Row
from regard.errors import DataError

COLUMNS = ColumnMap({"good": "sentence_good", "bad": "sentence_bad", "kind": "uid"})


def row(good: str, bad: str) -> Row:
    return Row(Place("a.jsonl", 2), {"sentence_good": good, "sentence_bad": bad, "uid": "agreement"}, "")


def test_minimal_pairs():
    record = MinimalRecord.from_row(row("cats sleep", "cats sleeps"), COLUMNS)
    assert (record.good, record.bad, record.kind) == ("cats sleep", "cats sleeps", "agreement")
    with pytest.raises(DataError, match="the two sentences are the same"):
        MinimalRecord.from_row(row("a", "a"), COLUMNS)
    with pytest.raises(DataError, match="column sentence_bad: there is no sentence here"):
        MinimalRecord.from_row(row("a", " "), COLUMNS)


def test_a_document_that_continues():
    values = {"text": "a part", "continues": True}
    assert DocumentRecord.from_row(Row(Place("a.txt", 1), values, ""), ColumnMap({"text": "text"})).continues
