"""How the training files were read, used again for the input of a prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.predict.batch.files import put

from regard.errors import DataError
from regard.predict.batch.read_options import TrainingReadOptions
from regard.predict.batch.rows import file_rows


def test_remembered_columns_are_used_where_the_file_has_them(tmp_path: Path) -> None:
    named = TrainingReadOptions({"text": "opinion", "label": "stars"})
    both = put(tmp_path / "a.csv", "text,opinion\nno,yes\n")
    other = put(tmp_path / "b.csv", "text,label\nyes,a\n")
    assert next(file_rows(both, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(other, "classify", read_options=named)).item.text == "yes"
    assert next(file_rows(both, "classify", read_options=named, columns={"text": "text"})).item.text == "no"
    pairs = put(tmp_path / "c.csv", "left,right\na,b\n")
    assert (
        next(
            file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "left", "second": "right"}))
        ).item.second
        == "b"
    )
    with pytest.raises(DataError):
        next(file_rows(pairs, "pair", read_options=TrainingReadOptions({"first": "other", "second": "right"})))


def test_numbers_of_columns_are_for_files_without_names(tmp_path: Path) -> None:
    named = put(tmp_path / "a.csv", "id,text\n1,yes\n")
    assert next(file_rows(named, "classify", read_options=TrainingReadOptions({"text": "0"}))).item.text == "yes"


def test_the_encoding_of_the_training_is_for_files_that_are_not_utf8(tmp_path: Path) -> None:
    named = TrainingReadOptions(encoding="mac-roman")
    (tmp_path / "a.txt").write_bytes("Zoé, née là\n".encode("mac-roman"))
    (tmp_path / "b.txt").write_bytes("Zoé, née là\n".encode())
    for name in ("a.txt", "b.txt"):
        assert next(file_rows(str(tmp_path / name), "classify", read_options=named)).item.text == "Zoé, née là"


@pytest.mark.parametrize("damage", [None, [], {"columns": [1]}, {"columns": {"text": 7, "what": "a"}, "separator": 5}])
def test_a_damaged_memory_is_none(damage: Any) -> None:
    assert TrainingReadOptions.of(damage) == TrainingReadOptions()
