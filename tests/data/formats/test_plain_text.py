"""Documents, lines and questions of plain text files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.data.helpers import LINE, fields, same_folder, text_and_label, write_file

from regard.data.readers import read
from regard.errors import DataError

TREC = [
    "DESC:manner How did the fire begin ?",
    "ENTY:animal What bird sings at night ?",
    "ABBR:exp What does UN stand for ?",
    "DESC:def What is a fjord ?",
]


@same_folder
@given(st.lists(st.lists(LINE.filter(str.strip), min_size=1, max_size=3), min_size=1, max_size=4))
def test_documents_come_back(tmp_path: Path, documents: list[list[str]]) -> None:
    assume(not documents[0][0].startswith("\ufeff"))
    expected = ["\n".join(lines) for lines in documents]
    path = write_file(tmp_path / "data.txt", "\n\n".join(expected))
    assert fields(read(path, format="text"), "text") == expected
    crlf = write_file(tmp_path / "crlf.txt", "\r\n\r\n".join(expected).replace("\r\n", "\n").replace("\n", "\r\n"))
    assert fields(read(crlf, format="text"), "text") == expected
    assert fields(read(path, format="lines"), "text") == "\n\n".join(expected).split("\n")


def test_a_document_too_long_to_hold_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.formats.plain_text.LONGEST_DOCUMENT", 20)
    path = write_file(tmp_path / "a.txt", "a line of text\n" * 5 + "\nshort\n")
    results = [
        (text.count("\n") + 1, continues, place.line)
        for text, continues, place in fields(read(path), "text", "continues", "place")
    ]
    assert results == [(2, True, 1), (2, True, 3), (1, False, 5), (1, False, 7)]


@pytest.mark.parametrize("name", ["train_5500.label", "questions.txt", "questions"])
def test_trec_lines_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("\n".join(TREC) + "\n\n")
    reader = read(path)
    assert (reader.schema.format, reader.schema.task) == ("trec", "classify")
    assert fields(reader, "label") == ["DESC", "ENTY", "ABBR", "DESC"]
    assert text_and_label(read(path, columns={"label": "fine"}))[0] == ("How did the fire begin ?", "DESC:manner")
    assert fields(read(path, task="text"), "text")[1] == "What bird sings at night ?"


def test_trec_lines_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.label"
    path.write_text("\n".join([*TREC, "no label here"]))
    assert read(path).schema.format == "text"
    with pytest.raises(DataError, match=r'a.label line 5: is not a label and a text: .*; expected "LABEL:sub text"'):
        text_and_label(read(path, format="trec"))
    assert len(text_and_label(read(path, format="trec", skip_bad=tmp_path / "bad.jsonl"))) == 4
    path.write_text("NOTE: this is prose.\nIt goes on.\n")
    assert read(path).schema.format == "text"
