"""Folders, globs and lists of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.helpers import fields, write_file

from regard.data.readers import read, split_names
from regard.data.records import (
    Place,
)
from regard.data.sources.locate import find_sources
from regard.errors import DataError


def test_folders_globs_and_lists(tmp_path: Path) -> None:
    for name in ("train-v1", "dev", "test"):
        write_file(tmp_path / f"{name}.csv", f"text,label\n{name},a\n")
    write_file(tmp_path / "test.csv", "label,text\na,test\n")  # another order
    write_file(tmp_path / "notes.md", "not data")
    assert split_names(tmp_path) == ("train", "valid", "test")
    assert fields(read(tmp_path), "text") == ["train-v1"]
    assert fields(read(tmp_path, split="valid"), "text") == ["dev"]
    assert fields(read(f"{tmp_path}/*.csv"), "text") == ["dev", "test", "train-v1"]
    files = [tmp_path / "test.csv", tmp_path / "dev.csv"]
    reader = read(files)
    assert fields(reader, "text") == ["test", "dev"]
    assert reader.rows == 2
    assert [record.place for record in reader] == [Place(str(file), 2) for file in files]


def test_a_similar_name_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").touch()
    with pytest.raises(DataError, match=r'does not exist\. Did you mean "reviews.csv"'):
        find_sources(tmp_path / "review.tsv")
    with pytest.raises(DataError, match=r"does not exist\.$"):
        find_sources(tmp_path / "notes.csv")  # no more than the suffix is the same
