"""A teacher that is not better than the most frequent label."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import regard
from regard.compression.result import CandidateResult
from regard.compression.weak_teacher import weak_teacher_note
from regard.data.records import ClassifyRecord, TagRecord
from regard.metrics.confidence import Score

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
