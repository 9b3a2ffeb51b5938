"""Unlabeled texts and variants of training texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.compression.more_rows import can_use, read_unlabeled, variants, with_more_rows
from regard.compression.teacher import Teacher
from regard.data.records import ClassifyRecord, PairRecord, TagRecord
from regard.errors import InputError
from regard.training.load_data import LabeledData


def test_variants_are_parts_with_other_words() -> None:
    rows = [ClassifyRecord("one two three four", "a"), PairRecord("five six", "seven eight", "b")]
    words = {"one", "two", "three", "four", "five", "six", "seven", "eight"}
    made = variants(rows, count=30, seed=1)
    assert len(made) == 30
    assert made == variants(rows, count=30, seed=1)
    assert all(getattr(record, "label", "") is None for record in made)
    assert {word for record in made for _, text in record.texts for word in text.split()} <= words
    assert {type(record) for record in made} == {ClassifyRecord, PairRecord}
    assert variants([], count=0) == []


def test_words_are_replaced_by_near_ones() -> None:
    rows = [ClassifyRecord("Film film film film film film film film", "a")]
    made = variants(rows, count=20, seed=0, neighbors={"film": ("movie", "picture")})
    words = {word for record in made for _, text in record.texts for word in text.split()}
    assert {"movie", "picture"} <= words <= {"film", "Film", "movie", "picture", "Movie", "Picture"}


def test_unlabeled_texts_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("a text\n\nanother one\n")
    assert [record.texts[0][1] for record in read_unlabeled(file, "classify")] == ["a text", "another one"]
    assert [record.tokens for record in read_unlabeled(file, "tag") if isinstance(record, TagRecord)] == [
        ("a", "text"),
        ("another", "one"),
    ]
    with pytest.raises(InputError, match="is for the tasks classify and tag; this model is for pair"):
        read_unlabeled(file, "pair")
    assert (can_use("pair"), can_use("tag"), can_use("answer")) == (True, True, False)


def test_variants_of_tagged_rows() -> None:
    made = variants([TagRecord.from_tokens(["one", "two", "three"], ["O", "B-A", "O"])], count=5)
    assert all(isinstance(record, TagRecord) and record.tags is None for record in made)
    assert {word for record in made for word in getattr(record, "tokens", ())} <= {"one", "two", "three"}


def test_the_teacher_labels_more_rows(teacher: Teacher, labeled: LabeledData) -> None:
    more = with_more_rows(labeled, teacher, [ClassifyRecord("great soup"), ClassifyRecord("dull film")])
    assert len(more.train) == len(labeled.train) + 2
    assert getattr(more.train[-1], "label", None) in ("good", "bad")
    assert more.fingerprint != labeled.fingerprint
