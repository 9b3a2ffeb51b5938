"""The teacher's answers: for each position, once, kept on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.predict.models import word_tokenizer

from regard.compression.teacher import Teacher
from regard.data.batching.examples import TEACHER
from regard.data.records import ClassifyRecord
from regard.training.load_data import LabeledData


def test_soft_targets_are_log_probabilities(teacher: Teacher, labeled: LabeledData) -> None:
    rows = labeled.train[:20]
    preprocessing = teacher.model.preprocessing()
    examples = teacher.task.examples(rows, preprocessing, labeled=True)
    with_soft = teacher.soft_targets(teacher.task, examples, rows)
    soft = with_soft.by_sequence[TEACHER]
    assert soft.shape == (20, 2)
    assert np.allclose(np.exp(soft).sum(1), 1, atol=1e-5)
    predicted = [answer.json()["label"] for answer in teacher.model.predict(rows)]
    labels = teacher.task.labels or ()
    assert predicted == [labels[number] for number in soft.argmax(1)]


def test_answers_are_computed_once(teacher: Teacher, labeled: LabeledData) -> None:
    rows = labeled.train[:10]
    examples = teacher.task.examples(rows, teacher.model.preprocessing(), labeled=True)
    first = teacher.soft_targets(teacher.task, examples, rows)
    assert len(list(teacher.cache.glob("*.npy"))) == 1
    with mock.patch.object(Teacher, "_positions", side_effect=AssertionError):
        again = teacher.soft_targets(teacher.task, examples, rows)
    assert np.array_equal(first.by_sequence[TEACHER], again.by_sequence[TEACHER])


def test_another_tokenizer_gets_answers_for_whole_texts(teacher: Teacher, labeled: LabeledData) -> None:
    rows = labeled.train[:10]
    own = teacher.model.preprocessing()
    examples = teacher.task.examples(rows, own, labeled=True)
    other = dataclasses.replace(examples, ids=examples.ids + 1)
    same = teacher.soft_targets(teacher.task, examples, rows).by_sequence[TEACHER]
    assert np.allclose(teacher.soft_targets(teacher.task, other, rows).by_sequence[TEACHER], same, atol=1e-6)
    assert word_tokenizer(special=True).size  # a tokenizer of another kind


def test_the_teacher_labels_rows(teacher: Teacher, tmp_path: Path) -> None:
    labeled = teacher.label([ClassifyRecord("soup film great day"), ClassifyRecord("room dull book")])
    assert {getattr(record, "label", None) for record in labeled} <= {"good", "bad"}
    assert all(isinstance(record, ClassifyRecord) for record in labeled)
    assert teacher.identity == Teacher(teacher.model, teacher.task, tmp_path).identity


@pytest.mark.parametrize("text", ["great soup", "cold cold room"])
def test_labels_are_those_of_predict(teacher: Teacher, text: str) -> None:
    (record,) = teacher.label([ClassifyRecord(text)])
    assert getattr(record, "label", None) == teacher.model.predict([text])[0].json()["label"]
