"""A teacher that was trained on the rows that it is measured on is noted."""

from __future__ import annotations

from pathlib import Path

from regard.compression.seen_rows import seen_note
from regard.data.readers import read


def test_training_rows_are_recognized(teacher_folder: Path, rows_file: Path, test_file: Path) -> None:
    known, other = list(read(rows_file)), list(read(test_file))
    note = seen_note(teacher_folder, known)
    assert note is not None
    assert f"of {len(known)} rows of the test are also in the training data of the teacher" in note
    assert seen_note(teacher_folder, known[:10]) is not None
    assert seen_note(teacher_folder, other) is None
    assert seen_note(None, known) is None
