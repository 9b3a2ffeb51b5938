"""Rows that belong together."""

from __future__ import annotations

from regard.comparison.groups import group_key, row_groups
from regard.data.records import AnswerRecord, ClassifyRecord, TranslateRecord


def test_what_rows_share() -> None:
    assert group_key(ClassifyRecord("a", "x", group="book")) == ("group", "book")
    assert group_key(ClassifyRecord("a", "x")) is None
    assert group_key(TranslateRecord("a house", "ein Haus")) == ("source sentence", "a house")
    assert group_key(AnswerRecord(id="1", context="A man.", question="Who?", answers=None)) == ("paragraph", "A man.")


def test_rows_without_groups_and_groups_of_one_row() -> None:
    assert row_groups([None, None]).numbers is None
    assert row_groups([("group", "a"), ("group", "b")]).numbers is None


def test_groups_are_numbered() -> None:
    groups = row_groups([("group", "a"), None, ("group", "a")])
    assert groups.numbers is not None
    assert groups.numbers.tolist() == [0, 1, 0]
    assert groups.note == "2 groups of rows are resampled as a whole"


def test_few_paragraphs_are_not_resampled_but_mentioned() -> None:
    groups = row_groups([("paragraph", "a"), ("paragraph", "a"), ("paragraph", "b")])
    assert groups.numbers is None
    assert "only 2 paragraphs" in (groups.note or "")
