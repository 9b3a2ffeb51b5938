"""The teacher: its answers, and whether it is worth compressing."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.predict.models import word_tokenizer

import regard
from regard.compression.result import CandidateResult
from regard.compression.seen_rows import seen_note
from regard.compression.teacher import Teacher
from regard.compression.weak_teacher import weak_teacher_note
from regard.data.batching.examples import TEACHER, Examples
from regard.data.readers import read
from regard.data.records import ClassifyRecord, Record, TagRecord
from regard.metrics.confidence import Score
from regard.predict.load import load
from regard.predict.model_task import task_for
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
    (stored,) = teacher.cache.iterdir()
    written = stored.stat().st_mtime_ns
    again = teacher.soft_targets(teacher.task, examples, rows)
    assert stored.stat().st_mtime_ns == written
    assert np.array_equal(first.by_sequence[TEACHER], again.by_sequence[TEACHER])


def test_another_tokenizer_gets_answers_for_whole_texts(teacher: Teacher, labeled: LabeledData) -> None:
    rows = labeled.train[:10]
    own = teacher.model.preprocessing()
    examples = teacher.task.examples(rows, own, labeled=True)
    other = dataclasses.replace(examples, ids=examples.ids + 1)
    same = teacher.soft_targets(teacher.task, examples, rows).by_sequence[TEACHER]
    assert np.allclose(teacher.soft_targets(teacher.task, other, rows).by_sequence[TEACHER], same, atol=1e-6)
    assert word_tokenizer(special=True).size  # a tokenizer of another kind


@pytest.mark.parametrize("text", ["great soup", "cold cold room"])
def test_labels_are_those_of_predict(teacher: Teacher, text: str) -> None:
    (record,) = teacher.label([ClassifyRecord(text)])
    assert getattr(record, "label", None) == teacher.model.predict([text])[0].json()["label"]


def test_tags_of_words_for_another_tokenizer(tmp_path: Path) -> None:
    tags = {"soup": "B-FOOD", "film": "O", "day": "O"}
    words = [["soup", "film"], ["day", "soup", "day"], ["film", "day"]] * 4
    rows: list[Record] = [TagRecord.from_tokens(row, [tags[word] for word in row]) for row in words]
    columns = [{"tokens": row, "tags": [tags[word] for word in row]} for row in words]
    regard.train(columns, preset="tiny-bert", out=tmp_path / "model", steps=2, device="cpu", dev_fraction=0)
    model = load(tmp_path / "model", device="cpu")
    teacher = Teacher(model, task_for(model.checkpoint, model.folder), tmp_path / "cache")
    (labeled,) = teacher.label([TagRecord.from_tokens(["soup", "day"], None)])
    assert isinstance(labeled, TagRecord)
    assert set(labeled.tags or ()) <= {"O", "B-FOOD"}
    examples = teacher.task.examples(rows, model.preprocessing(), labeled=True)
    same = teacher.soft_targets(teacher.task, examples, rows).by_token[TEACHER]
    with mock.patch.object(Teacher, "_own_examples", return_value=doubled(examples)):
        other = teacher.soft_targets(teacher.task, examples, rows).by_token[TEACHER]
    assert np.array_equal(np.isnan(same), np.isnan(other))
    assert other.shape == same.shape


def doubled(examples: Examples) -> Examples:
    """Every token twice, as if the tokenizer cut words in two; the second one begins no word."""
    words = np.repeat(examples.by_token["word"], 2)
    words[1::2] = -1
    by_token = {name: np.repeat(values, 2) for name, values in examples.by_token.items()} | {"word": words}
    bounds, ids = examples.bounds * 2, np.repeat(examples.ids, 2)
    segments = None if examples.segments is None else np.repeat(examples.segments, 2)
    return dataclasses.replace(examples, ids=ids, bounds=bounds, segments=segments, by_token=by_token)


ROWS = [ClassifyRecord("a", label) for label in ("x", "x", "x", "y")]


def teacher(accuracy: float, name: str = "accuracy") -> CandidateResult:
    return CandidateResult("teacher", "teacher", {name: Score(accuracy, accuracy, accuracy)})


def test_only_weak_classifiers_get_a_note() -> None:
    note = weak_teacher_note(teacher(0.75), ROWS)
    assert note is not None
    assert "accuracy of 0.7500 on the test rows, not more than" in note
    assert '"x" (0.7500)' in note
    assert weak_teacher_note(teacher(0.5), ROWS) is not None
    assert weak_teacher_note(teacher(1.0), ROWS) is None
    assert weak_teacher_note(teacher(0.1, "f1"), [TagRecord.from_text("a")]) is None
    assert weak_teacher_note(teacher(0.1, "spearman"), [ClassifyRecord("a", 1.5)]) is None


def test_compress_warns_at_the_start_and_in_its_notes(tmp_path: Path) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([f"word{row} and more", "y" if row % 4 == 0 else "x"] for row in range(200))
    data = tmp_path / "rows.csv"
    regard.train(data, preset="tiny-bert", out=tmp_path / "teacher", steps=2, lr=1e-5, device="cpu")
    with pytest.warns(UserWarning, match="most frequent label"):
        result = regard.compress(
            tmp_path / "teacher", data, out=tmp_path / "small", floor=0.5, methods=["int8"], device="cpu"
        )
    assert any("most frequent label" in note for note in result.notes)


def test_training_rows_are_recognized(teacher_folder: Path, rows_file: Path, test_file: Path) -> None:
    known, other = list(read(rows_file)), list(read(test_file))
    note = seen_note(teacher_folder, known)
    assert note is not None
    assert f"of {len(known)} rows of the test are also in the training data of the teacher" in note
    assert seen_note(teacher_folder, known[:10]) is not None
    assert seen_note(teacher_folder, other) is None
    assert seen_note(None, known) is None
