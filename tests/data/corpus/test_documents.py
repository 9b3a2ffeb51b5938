"""Documents of text files in chunks, without losing a character."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.data.corpus import documents
from regard.data.corpus.documents import read_text_groups

LETTERS = st.text(st.sampled_from("ab .\n\t é東😀\r"), max_size=300)


def write(path: Path, text: str) -> Path:
    opened: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8", newline="") as stream:
        stream.write(text)
    return path


@settings(deadline=None, max_examples=60)
@example("   ", False, False, 2)
@example("a\n    \nb", False, False, 2)
@given(LETTERS, st.booleans(), st.booleans(), st.integers(2, 30))
def test_no_character_is_lost_however_small_the_pieces(text: str, sentences: bool, lines: bool, size: int) -> None:
    import tempfile

    expected = [part.split() for part in _documents(text)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in (("GROUP", 40), ("CHUNK", size), ("MAX_CHUNK", 2 * size), ("READ_BYTES", size)):
            patch.setattr(documents, name, value)
        path = Path(folder) / "a.txt"
        path.write_bytes(text.encode())
        results: list[str] = [""]
        for group in read_text_groups([path], sentences=sentences, lines=lines):
            ends = set(group.ends)
            for number, piece in enumerate(group.chunks, 1):
                results[-1] += piece
                if number in ends:
                    results.append("")
    assert results.pop() == ""
    assert ["".join(part.split()) for part in results] == ["".join(part) for part in expected]


def _documents(text: str) -> list[str]:
    results, rows = [], ""
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        if line.strip():
            rows += line + "\n"
        elif rows:
            results.append(rows)
            rows = ""
    return results
