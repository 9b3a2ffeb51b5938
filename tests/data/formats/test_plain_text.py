"""Documents, lines and questions of plain text files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.data.helpers import LINE, fields, same_folder, write_file

from regard.data.readers import read


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
