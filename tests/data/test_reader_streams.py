"""Files of any size and lines of any length are read as they come."""

from __future__ import annotations

import io
import itertools
import json
import sys
import types
from pathlib import Path

import pytest
from tests.data.helpers import fields, write_file

from regard.data.readers import read


class Endless(io.RawIOBase):
    """A file without an end."""

    def __init__(self, start: bytes, again: bytes) -> None:
        self.left, self.again, self.bytes_read = start, again, 0

    def read1(self, size: int = -1) -> bytes:
        while len(self.left) < size:
            self.left += self.again * 1000
        result, self.left = self.left[:size], self.left[size:]
        self.bytes_read += size
        return result


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
    results = list(itertools.islice(read("-"), 15_000))
    assert set(fields(results, "text", "label")) == {("one, two", "a")}
    assert stdin.bytes_read < 15_000 * len(again) + (1 << 21)


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
    path = write_file(tmp_path / name, content)
    (record,) = read((path, path) if name == "a.en" else path)
    assert record.texts[0][1] == text
