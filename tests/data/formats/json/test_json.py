"""JSON comes back as it was written, line by line or in one large value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import LABEL, TEXT, same_folder, text_and_label, write_file

from regard.data.formats.json.json_start import is_nested
from regard.data.readers import read
from regard.errors import DataError

ROWS = st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=6)


@same_folder
@given(ROWS, st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_json_comes_back(tmp_path: Path, rows: list[tuple[str, str]], ascii: bool, bom: str) -> None:
    objects = [{"text": text, "label": label} for text, label in rows]
    lines = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in objects)
    assert text_and_label(read(write_file(tmp_path / "data.jsonl", bom + lines))) == rows
    for indent in (None, 2):
        whole = json.dumps(objects, ensure_ascii=ascii, indent=indent)
        assert text_and_label(read(write_file(tmp_path / "data.json", bom + whole))) == rows
    nested = json.dumps({"version": [1, {"data": 2}], "data": objects}, ensure_ascii=ascii)
    assert text_and_label(read(write_file(tmp_path / "nested.json", bom + nested))) == rows


def test_squad_articles_need_no_title_and_stay_apart(tmp_path):
    def article(number):
        answers = [{"text": "1901", "answer_start": 0}]
        question = {"id": str(number), "question": "When?", "answers": answers}
        return {"paragraphs": [{"context": "1901 it was.", "qas": [question]}]}

    path = tmp_path / "untitled.json"
    path.write_text(json.dumps({"version": "1.1", "data": [article(1), article(2)]}))
    first, second = read(path)
    assert first.group
    assert second.group
    assert first.group != second.group


def test_nested_files():
    assert is_nested(b'[{"text": "a"}]')
    assert is_nested(b'{"version": "1.1", "data": [{"title": "a"}]}')
    assert not is_nested(b'{"text": "a"}\n{"text": "b"}\n')


def test_json_of_very_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.formats.json.json_start.MAX_PARTS", 20_000)
    text = '{"text": "x", "label": "y", "more": [' + "{}," * 20_001 + "{}]}"
    for name, content in (("a.jsonl", text + "\n"), ("a.json", f"[{text}]")):
        path = write_file(tmp_path / name, content)
        with pytest.raises(DataError, match=r"more than 4,000,000 lists and objects|no readable row"):
            list(read(path))
