"""Files of any size and lines of any length are read as they come."""

from __future__ import annotations

import io
import itertools
import json
import sys
import time
import types
from pathlib import Path

import pytest
from tests.data.fields import fields

from regard.data.readers import read
from regard.errors import DataError


def put(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


class Endless(io.RawIOBase):
    """A file without an end."""

    def __init__(self, start: bytes, again: bytes) -> None:
        self.left, self.again, self.given = start, again, 0

    def read1(self, size: int = -1) -> bytes:
        while len(self.left) < size:
            self.left += self.again * 1000
        found, self.left = self.left[:size], self.left[size:]
        self.given += size
        return found


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"text,label\n", b'"one, two",a\n'),
        (b"text\tlabel\n", b"one, two\ta\n"),
        (b"", b'{"text": "one, two", "label": "a"}\n'),
        (b'[{"text": "one, two", "label": "a"}', b', {"text": "one, two", "label": "a"}'),
    ],
)
def test_a_stream_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch, start: bytes, again: bytes) -> None:
    stdin = Endless(start, again)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stdin))
    found = list(itertools.islice(read("-"), 15_000))
    assert set(fields(found, "text", "label")) == {("one, two", "a")}
    assert stdin.given < 15_000 * len(again) + (1 << 21)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.txt", "a.en"])
def test_ten_megabytes_in_one_line(tmp_path: Path, name: str) -> None:
    text = "x" * 10_000_000
    content = {
        "a.csv": f'text,label\n"{text}",a\n',
        "a.tsv": f"text\tlabel\n{text}\ta\n",
        "a.jsonl": json.dumps({"text": text, "label": "a"}),
        "a.json": json.dumps([{"text": text, "label": "a"}]),
        "a.txt": text,
        "a.en": text,
    }[name]
    path = put(tmp_path / name, content)
    began = time.perf_counter()
    (record,) = read((path, path) if name == "a.en" else path)
    assert record.texts[0][1] == text
    assert time.perf_counter() - began < 5


def test_a_document_too_long_to_hold_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.formats.plain_text.LONGEST_DOCUMENT", 20)
    path = put(tmp_path / "a.txt", "a line of text\n" * 5 + "\nshort\n")
    found = [
        (text.count("\n") + 1, continues, place.line)
        for text, continues, place in fields(read(path), "text", "continues", "place")
    ]
    assert found == [(2, True, 1), (2, True, 3), (1, False, 5), (1, False, 7)]


def test_a_quote_left_open_is_given_up_and_takes_one_line(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", 'text,label\n"open,a\n' + "word,b\n" * 20_000 + '"last",c\n')
    seen: list[DataError] = []
    assert sum(1 for _ in read(path, on_bad=seen.append)) == 20_001
    assert [error.line for error in seen] == [2]


@pytest.mark.parametrize("piped", [False, True])
def test_a_first_row_of_many_long_lines_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piped: bool
) -> None:
    text = "one line, of many\n" * 40_000
    path = put(tmp_path / "a.csv", f'text,label\n"{text}",1.5\n"{text}",2\n')
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    found = fields(read("-" if piped else path), "text", "label")
    assert found == [(text, 1.5), (text, 2.0)]
