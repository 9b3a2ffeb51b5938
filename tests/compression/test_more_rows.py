"""Unlabeled texts and variants of training texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint, word_tokenizer

from regard.compression.more_rows import (
    MAX_VARIANTS,
    MAX_WORDS,
    can_use,
    read_unlabeled,
    variant_count,
    variants,
    with_more_rows,
)
from regard.compression.teacher import Teacher
from regard.data.records import AnswerRecord, ClassifyRecord, PairRecord, TagRecord
from regard.data.records.question import AnswerSpan
from regard.errors import InputError
from regard.predict.load import load
from regard.predict.model import Model
from regard.predict.model_task import task_for
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


def test_unlabeled_texts_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("a text\n\nanother one\n")
    assert [record.texts[0][1] for record in read_unlabeled(file, "classify")] == ["a text", "another one"]
    assert [record.tokens for record in read_unlabeled(file, "tag") if isinstance(record, TagRecord)] == [
        ("a", "text"),
        ("another", "one"),
    ]
    with pytest.raises(InputError, match="is for the tasks classify, pair, tag, answer; this model is for translate"):
        read_unlabeled(file, "translate")
    assert (can_use("pair"), can_use("tag"), can_use("answer"), can_use("translate")) == (True, True, True, False)


def test_unlabeled_pairs_and_questions(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,label\na,b,yes\nc,d,no\n")
    records = [record for record in read_unlabeled(pairs, "pair") if isinstance(record, PairRecord)]
    assert [(one.first, one.second, one.label) for one in records] == [("a", "b", None), ("c", "d", None)]
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "1", "question": "who?", "context": "it was Ada", "answers": ["Ada"]}\n')
    (record,) = read_unlabeled(questions, "answer")
    assert isinstance(record, AnswerRecord)
    assert (record.question, record.answers) == ("who?", None)


def test_variants_of_questions_have_other_contexts() -> None:
    record = AnswerRecord("1", "it was Ada who wrote it down", "who?", (AnswerSpan("Ada", 7),))
    made = variants([record], count=4)
    assert all(isinstance(one, AnswerRecord) and one.question == "who?" and one.answers is None for one in made)


def test_fewer_variants_of_long_texts() -> None:
    assert variant_count([ClassifyRecord("a b c")] * 50) == 50
    assert variant_count([ClassifyRecord("a b c")] * (MAX_VARIANTS + 1)) == MAX_VARIANTS
    assert variant_count([ClassifyRecord("a " * 500)] * 5000) == MAX_WORDS // 500


def test_variants_of_tagged_rows() -> None:
    made = variants([TagRecord.from_tokens(["one", "two", "three"], ["O", "B-A", "O"])], count=5)
    assert all(isinstance(record, TagRecord) and record.tags is None for record in made)
    assert {word for record in made for word in getattr(record, "tokens", ())} <= {"one", "two", "three"}


def test_the_teacher_labels_more_rows(teacher: Teacher, labeled: LabeledData) -> None:
    more = with_more_rows(labeled, teacher, [ClassifyRecord("great soup"), ClassifyRecord("dull film")])
    assert len(more.train) == len(labeled.train) + 2
    assert getattr(more.train[-1], "label", None) in ("good", "bad")
    assert more.fingerprint != labeled.fingerprint


def test_the_teacher_answers_questions(tmp_path: Path) -> None:
    model = Model(random_checkpoint("tiny-bert", {"span": 2}), word_tokenizer(special=True))
    folder = model.save(tmp_path / "model")
    model = load(folder, device="cpu")
    asking = Teacher(model, task_for(model.checkpoint, model.folder), tmp_path / "cache")
    (record,) = asking.label([AnswerRecord("1", "w1 w2 w3 w4", "w5 w6")])
    assert isinstance(record, AnswerRecord)
    assert record.answers is not None
    assert all(record.context[span.start :].startswith(span.text) for span in record.answers)
