"""A fixed copy has the fixed rows, lists the changes, and has no findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.helpers import write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.rules.mojibake import clean
from regard.data.check.run import check
from regard.errors import DataError, FolderError

TABLE = (
    "id,text,label\n"
    '1,"a cafÃ© by the sea, and more",pos\n'
    "2,the door\u200b was shut all day,neg \n"
    "3,,pos\n"
    "4,it rained for a week in May,neg\n"
    "4,it rained for a week in May,neg\n"
    "5,a bird with a NU\0L in it,pos\n"
    "6,too,many,columns\n"
    "7,the sea was calm at noon,psitive\n"
)


def test_table_keeps_its_columns_and_lists_changes(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", TABLE)
    done = write_fixed_copy(path, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == (
        "id,text,label\n"
        '1,"a café by the sea, and more",pos\n'
        "2,the door was shut all day,neg\n"
        "4,it rained for a week in May,neg\n"
        "5,a bird with a NUL in it,pos\n"
        "7,the sea was calm at noon,psitive\n"
    )
    assert done.rows == 5
    assert dict(done.changes) == {
        "texts with encoding damage repaired": 2,
        "labels with spaces around them trimmed": 1,
        "NUL characters removed": 1,
        "empty rows removed": 1,
        "duplicate rows removed": 1,
    }
    assert done.left_out == ("line 8: the row has 4 columns (6 | too | many | columns)",)
    assert path.read_text(encoding="utf-8") == TABLE


def test_fixed_copy_has_no_findings(tmp_path: Path) -> None:
    write_fixed_copy(write_file(tmp_path / "a.csv", TABLE), tmp_path / "b.csv")
    assert check(tmp_path / "b.csv").findings == ()


def test_row_without_tags_is_kept(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.jsonl", '{"tokens": ["a"], "tags": ["I-X"]}\n{"tokens": ["b"]}\n')
    assert write_fixed_copy(path, tmp_path / "b.jsonl", scheme="iob2").rows == 2
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[1]) == {"tokens": ["b"]}


def test_copy_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "text,label\nx,a\n")
    with pytest.raises(FolderError, match="cannot be written"):
        write_fixed_copy(path, tmp_path / "nowhere" / "b.csv")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv"]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from(["a", "b"])), min_size=1, max_size=6))
def test_nothing_else_is_changed(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("fix")
    content = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    write_fixed_copy(write_file(folder / "a.jsonl", content), folder / "b.jsonl")
    stored = [json.loads(line) for line in (folder / "b.jsonl").read_text(encoding="utf-8").split("\n") if line]
    expected = dict.fromkeys((clean(text), label) for text, label in rows if clean(text).strip())
    assert {(row["text"].strip(), row["label"]) for row in stored} == {
        (text.strip(), label) for text, label in expected
    }


def test_sentences_without_tags(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes(b"\xff NN B-PER\n\nAda NN\nsang VB\n\nin IN\nBath NN\n")
    with pytest.raises(DataError, match='there is no column "tags"'):
        write_fixed_copy(path, tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()
