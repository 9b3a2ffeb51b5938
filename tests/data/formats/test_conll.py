"""CoNLL files come back as they were written, with tags as IOB2."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import fields, same_folder, write_file

from regard.data.readers import read
from regard.data.records import (
    TagRecord,
)

WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\t #-"), min_size=1, max_size=8)


@same_folder
@given(st.lists(st.lists(st.tuples(WORD, st.sampled_from(["O", "B-X", "B-Y"])), min_size=1), min_size=1, max_size=4))
def test_conll_comes_back(tmp_path: Path, sentences: list[list[tuple[str, str]]]) -> None:
    for blank in (" ", "\t"):
        text = "\n".join("".join(f"{word}{blank}{tag}\n" for word, tag in sentence) for sentence in sentences)
        result = read(write_file(tmp_path / "data.conll", text))
        assert [
            list(zip(tokens, tags or (), strict=True)) for tokens, tags in fields(result, "tokens", "tags")
        ] == sentences
    rows = [json.dumps({"tokens": [w for w, _ in one], "tags": [t for _, t in one]}) for one in sentences]
    result = read(write_file(tmp_path / "data.jsonl", "\n".join(rows)))
    assert [
        list(zip(tokens, tags or (), strict=True)) for tokens, tags in fields(result, "tokens", "tags")
    ] == sentences


def test_tags_are_kept_as_iob2(tmp_path: Path) -> None:
    content = "-DOCSTART- O\n\n# sent_id = 1\nNew I-LOC\nYork I-LOC\nRome B-LOC\n\n# O\n"
    reader = read(write_file(tmp_path / "a.conll", content))
    assert fields(reader, "tags") == [("B-LOC", "I-LOC", "B-LOC"), ("O",)]
    assert reader.schema.scheme == "iob1"
    packed = write_file(
        tmp_path / "c.conll", "Rome B-LOC\n-DOCSTART- O\nParis B-LOC\n\nhere O\n"
    )  # no blank lines around it
    assert fields(read(packed), "tokens") == [("Rome",), ("Paris",), ("here",)]  # of two documents
    three = write_file(tmp_path / "b.conll", "1 New B-LOC x\n2 York E-LOC y\n")
    (record,) = read(three, columns={"token": 1, "tag": 2}, scheme="BIOES")
    assert isinstance(record, TagRecord)
    assert (record.tokens, record.tags) == (("New", "York"), ("B-LOC", "I-LOC"))
    (record,) = read(write_file(tmp_path / "c.jsonl", '{"tokens": ["a"], "tags": ["NOUN"]}'))
    assert isinstance(record, TagRecord)
    assert record.tags == ("NOUN",)


def test_documents_are_known_by_their_first_lines(tmp_path: Path) -> None:
    content = "a O\n\n-DOCSTART- -X- O\n\nb O\n\nc O\n-DOCSTART- O\nd O\n\n# newdoc id = x\ne O\n\n# newpar\nf O\n"
    reader = read(write_file(tmp_path / "a.conll", content.replace("-X- ", "")))
    assert fields(reader, "document") == [None, "1", "1", "2", "3", "3"]
    assert fields(reader, "left_context") == [(), (), ("b",), (), (), ("e",)]
    assert fields(reader, "right_context") == [(), ("c",), (), (), ("f",), ()]
    rows = [json.dumps({"tokens": [word], "tags": ["O"], "doc_id": number}) for word, number in (("a", 1), ("b", 1))]
    reader = read(write_file(tmp_path / "a.jsonl", "\n".join(rows)))
    assert fields(reader, "right_context") == [("b",), ()]
    assert "document=doc_id" in reader.summary
