"""What a report says about single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.data.records import ClassifyRecord, TagRecord
from regard.data.rows import NOWHERE, Place
from regard.report.row_facts import ISSUES, MISTAKES, place_text, row_facts
from regard.tasks.classify import Classify
from regard.tasks.tag import Tag
from regard.tasks.task import RowOutputs

TASK = Classify(names=("bad", "good"))


def rows(count: int = 200, *, wrong: int = 30, **more: Any) -> list[RowOutputs]:
    """Rows of growing length that a model is sure of, the first `wrong` ones with another label."""
    result = []
    for number in range(count):
        predicted = number % 2
        label = TASK.names[1 - predicted if number < wrong else predicted]
        record = ClassifyRecord(
            " ".join(["word"] * (1 + number % 40)), label, place=Place("rows.csv", number + 2), **more
        )
        logits = np.array([0.0, 0.0], np.float32)
        logits[predicted] = 2 + number / 100
        result.append(RowOutputs(record, [logits]))
    return result


def test_mistakes_are_those_of_the_model_the_most_confident_first() -> None:
    facts = row_facts(TASK, rows())
    assert facts.mistake_count == 30
    assert len(facts.mistakes) == MISTAKES
    confidences = [one.confidence or 0.0 for one in facts.mistakes]
    assert confidences == sorted(confidences, reverse=True)
    assert facts.mistakes[0].place == "rows.csv line 31"
    assert (facts.mistakes[0].target, facts.mistakes[0].answer) == ("bad", "good")


def test_label_errors_are_rows_whose_label_the_model_contradicts() -> None:
    facts = row_facts(TASK, rows(400, wrong=60))
    assert 0 < facts.issue_count <= 60
    assert len(facts.issues) <= ISSUES
    assert all(one.suggested == one.answer != one.target for one in facts.issues)


def test_a_model_that_guesses_finds_no_label_errors() -> None:
    """Half of the rows have each label, and half of the answers are wrong."""
    assert row_facts(TASK, rows(400, wrong=200)).issue_count == 0
    assert row_facts(TASK, rows(400, wrong=198)).issue_count > 0


def test_lengths_are_slices_with_their_scores() -> None:
    facts = row_facts(TASK, rows())
    lengths = [one for one in facts.slices if one.kind == "length"]
    assert lengths[0].name == "1 to 9 words"
    assert sum(one.rows for one in lengths) == 200
    assert lengths[0].score.value < 1 == lengths[-1].score.value


def test_groups_and_windows_are_slices_where_there_are_several() -> None:
    data = [*rows(50, wrong=5, group="first"), *rows(50, wrong=20, group="second")]
    data += [RowOutputs(row.record, [*row.outputs, *row.outputs]) for row in rows(20, group="first")]
    kinds = {(one.kind, one.name): one.rows for one in row_facts(TASK, data).slices}
    assert kinds["group", "first"] == 70
    assert kinds["windows", "several windows"] == 20
    assert not any(kind == "file" for kind, _ in kinds)


def test_coverage_falls_and_what_is_left_is_scored() -> None:
    points = row_facts(TASK, rows()).coverage
    assert points[0].coverage == 1
    assert points[0].accuracy == pytest.approx(170 / 200)
    assert [point.coverage for point in points] == sorted((point.coverage for point in points), reverse=True)
    assert points[-1].accuracy is None or points[-1].accuracy > 0.9


def test_numbers_are_ordered_by_their_error() -> None:
    task = Classify(kind="number")
    data = [RowOutputs(ClassifyRecord("a", float(number)), [np.array([0.0])]) for number in range(30)]
    facts = row_facts(task, data)
    assert [one.target for one in facts.mistakes[:2]] == ["29", "28"]
    assert facts.numbers[3] == (3.0, 0.0)
    assert facts.coverage == facts.issues == ()


def test_no_rows_have_no_facts() -> None:
    facts = row_facts(TASK, [])
    assert facts.mistakes == facts.issues == facts.slices == facts.coverage == ()


def test_places_in_words() -> None:
    assert place_text(NOWHERE) == ""
    assert place_text(Place("data/a.csv", 1200)) == "a.csv line 1,200"
    assert place_text(Place("the data", None, 3)) == "the data row 3"
    assert place_text(Place("a.csv")) == "a.csv"


def test_label_errors_of_several_labels_say_which_one() -> None:
    task = Classify(kind="multi", names=("app", "billing"))
    data = []
    for number in range(60):
        labels = tuple(name for place, name in enumerate(task.names) if number >> place & 1)
        logits = np.array([4.0 if name in labels else -4.0 for name in task.names], np.float32)
        wrong = {3: ("app",), 8: ("billing",)}  # the model says both, and none
        data.append(RowOutputs(ClassifyRecord(f"row {number}", wrong.get(number, labels)), [logits]))
    facts = row_facts(task, data)
    assert facts.issue_count == 2
    assert {(one.texts[0][1], one.suggested) for one in facts.issues} == {
        ("row 3", "with billing"),
        ("row 8", "without billing"),
    }


def test_label_errors_of_tags_name_the_word() -> None:
    task = Tag(names=("O", "B-LOC", "I-LOC"))
    data = []
    for number in range(40):
        tags = ("O", "O" if number == 7 else "B-LOC")
        record = TagRecord.from_tokens(("in", f"Paris{number}"), tags)
        chances = np.array([[0.98, 0.01, 0.01], [0.02, 0.97, 0.01]], np.float32)
        window = task._decoded(np.array([0, 1]), np.array([1, 2]), chances, np.zeros(1, np.int64))
        data.append(RowOutputs(record, [window]))
    facts = row_facts(task, data)
    assert facts.issue_count == 1
    assert [one.suggested for one in facts.issues] == ["Paris7: B-LOC"]
