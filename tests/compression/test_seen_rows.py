"""A teacher's own training data is recognized by its hash."""

from __future__ import annotations

from pathlib import Path

from regard.compression.seen_rows import seen_note


def test_training_data_is_recognized(teacher_folder: Path, rows_file: Path, test_file: Path) -> None:
    note = seen_note(teacher_folder, rows_file, "classify", {})
    assert note is not None
    assert "was trained on this data" in note
    assert seen_note(teacher_folder, test_file, "classify", {}) is None
    assert seen_note(None, rows_file, "classify", {}) is None
    assert seen_note(teacher_folder, rows_file.with_name("none.csv"), "classify", {}) is None
