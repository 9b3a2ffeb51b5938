"""What a schema says about a file."""

from __future__ import annotations

from pathlib import Path

from tests.data.helpers import text_and_label, write_file

from regard.data.readers import read


def test_columns_that_are_not_used_are_reported(tmp_path: Path) -> None:
    reader = read(write_file(tmp_path / "a.csv", "\n\nid;text;label;when\n1;x;y;z\n"))
    assert str(reader.schema).endswith("unused columns: id, when")
    assert text_and_label(reader) == [("x", "y")]


def test_another_file_is_read_like_the_first(tmp_path: Path) -> None:
    first = read(write_file(tmp_path / "train.csv", "text,label\nx,a|b\n"))
    second = write_file(tmp_path / "dev.csv", "text,label\ny,a\n")
    assert text_and_label(read(second)) == [("y", "a")]
    assert text_and_label(read(second, like=first.schema)) == [("y", ("a",))]
    assert text_and_label(read([tmp_path / "train.csv", second])) == [("x", ("a", "b")), ("y", ("a",))]
