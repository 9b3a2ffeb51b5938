"""Files of analogies."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import DataError, InputError
from regard.word_vectors.analogies import read_analogies


def test_sections_questions_and_pairs(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text(": family one\nman king woman queen\n\n: capitals\nParis France\nRome Italy\nOslo Norway\n")
    result = read_analogies(path)
    assert result["family one"] == [("man", "king", "woman", "queen")]
    assert len(result["capitals"]) == 6
    assert result["capitals"][:2] == [("Paris", "France", "Rome", "Italy"), ("Paris", "France", "Oslo", "Norway")]


def test_faults_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    path.write_text(": a\nman king woman\n")
    with pytest.raises(DataError, match=r"q.txt line 2: has 3 words; expected four"):
        read_analogies(path)
    path.write_text(": a\n")
    with pytest.raises(DataError, match="has no question"):
        read_analogies(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_analogies(tmp_path / "none.txt")
