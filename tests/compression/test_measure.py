"""What is measured of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.compression.measure import empty_table, measure, weight_bytes, with_words
from regard.compression.teacher import Teacher
from regard.data.records import AnswerRecord, ClassifyRecord, DocumentRecord, PairRecord, TagRecord, TranslateRecord
from regard.metrics.paired.rows import RowTable
from regard.predict.load import load
from regard.progress import Progress
from regard.training.load_data import LabeledData


def test_a_model_is_measured(teacher: Teacher, labeled: LabeledData) -> None:
    seen: list[Progress] = []
    result = measure(teacher.model, teacher.task, labeled.dev, labeled.train[:50], progress=seen.append)
    assert {one.stage for one in seen} == {"rows"}
    assert seen[-1].done == seen[-1].total == 2 * len(labeled.dev) + 50
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert result.test.rows == 50
    assert result.dev.rows == len(labeled.dev)
    assert result.scores["accuracy"].value == pytest.approx(result.test.value("accuracy"))
    assert list(result.latency_ms) == ["1", "24", "128"]
    assert all(value > 0 for value in result.latency_ms.values())
    assert result.texts_per_second > 0
    assert result.parameters == sum(weight.numel() for weight in teacher.model.network.parameters())


def test_stored_rows_have_the_scores_of_an_empty_table(teacher: Teacher, labeled: LabeledData) -> None:
    result = measure(teacher.model, teacher.task, labeled.dev, labeled.train[:30])
    empty = empty_table(teacher.task.meter())
    assert empty.rows == 0
    again = RowTable(result.test.features, empty.scores)
    assert again.values() == pytest.approx(result.test.values(), nan_ok=True)


def test_texts_of_a_length() -> None:
    assert with_words(ClassifyRecord("a b c", "x"), 5) == ClassifyRecord("a b c a b", "x")
    pair = with_words(PairRecord("a b c", "d", "x"), 4)
    assert isinstance(pair, PairRecord)
    assert (pair.first, pair.second) == ("a b", "d d")
    assert with_words(TranslateRecord("a b", "c"), 1).texts[0][1] == "a"
    assert len(with_words(TagRecord.from_text("a b"), 7).texts[0][1].split()) == 7
    answer = with_words(AnswerRecord("1", "a b c", "why"), 2)
    assert isinstance(answer, AnswerRecord)
    assert answer.context == "a b"
    assert with_words(DocumentRecord("a b"), 9) == DocumentRecord("a b")
    assert with_words(ClassifyRecord("", "x"), 2) == ClassifyRecord("a a", "x")


@pytest.mark.usefixtures("fast_int8")
def test_int8_is_smaller(teacher_folder: Path) -> None:
    exact, int8 = load(teacher_folder, device="cpu"), load(teacher_folder, device="cpu", engine="int8")
    assert weight_bytes(int8) < weight_bytes(exact)
