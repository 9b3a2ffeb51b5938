"""Records of all tasks become rows with texts, input and annotation."""

from __future__ import annotations

from regard.data.check.rules.checked_row import checked_row
from regard.data.records import ClassifyRecord, PairRecord, TranslateRecord


def test_texts_input_and_annotation() -> None:
    row = checked_row(ClassifyRecord(" good ", "pos"), "train")
    assert (row.texts, row.input_text, row.annotation) == ((("text", " good "),), "good", "'pos'")
    pair = checked_row(PairRecord("a", "b", "same"), "train")
    assert [role for role, _ in pair.texts] == ["first", "second"]
    assert pair.input_text == "a\x1fb"
    translation = checked_row(TranslateRecord("house", "Haus"), "valid")
    assert (translation.input_text, translation.annotation, translation.split) == ("house", "Haus", "valid")
