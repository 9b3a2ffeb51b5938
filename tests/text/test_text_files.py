"""Text files are read in chunks, plain or compressed."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.corpus import CORPUS, SENTENCES, trained

from regard.errors import InputError
from regard.progress import Progress
from regard.text.learn import train_tokenizer, train_tokenizer_from_texts
from regard.text.text_files import CHUNK, first_lines, read_chunks, split_chunks


def test_compressed_files_give_the_same_text(tmp_path: Path) -> None:
    raw = CORPUS.encode()
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    (tmp_path / "a.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "a.xz").write_bytes(lzma.compress(raw))
    for name in ("a.txt", "a.gz", "a.xz"):
        assert "".join(read_chunks([tmp_path / name])) == CORPUS
        assert train_tokenizer([tmp_path / name], size=200).backend.to_str() == trained("wordpiece").backend.to_str()
    both = "".join(read_chunks([tmp_path / "a.gz", tmp_path / "a.xz"]))
    assert both == CORPUS * 2
    assert first_lines([tmp_path / "a.gz", tmp_path / "a.xz"], 4) == SENTENCES[:2] * 2


def test_progress_counts_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(CORPUS * 900, encoding="utf-8")
    (tmp_path / "b.xz").write_bytes(lzma.compress(CORPUS.encode()))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    reports: list[Progress] = []
    list(read_chunks([tmp_path / "a.txt", tmp_path / "b.xz"], progress=reports.append))
    assert {report.total for report in reports} == {total}
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert reports[-1] == Progress("bytes", total, total)
    assert len(reports) > 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "é ", "東", " \n", "word "]), st.integers(1, 90_000)), max_size=4))
def test_chunks_are_short_and_complete(parts: list[tuple[str, int]]) -> None:
    texts = [part * count for part, count in parts]
    pieces = list(split_chunks(iter(texts)))
    assert "".join(pieces) == "".join(texts)
    assert all(0 < len(piece) <= CHUNK for piece in pieces)


def test_folder_or_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        train_tokenizer([tmp_path])
    with pytest.raises(InputError, match="no file was given"):
        train_tokenizer([])
    with pytest.raises(InputError, match="no text to learn from"):
        train_tokenizer_from_texts([])


def test_file_that_changes_during_reading(tmp_path: Path) -> None:
    path = tmp_path / "growing.txt"
    path.write_text(CORPUS * 500, encoding="utf-8")
    pieces = read_chunks([path])
    next(pieces)
    with path.open("a", encoding="utf-8") as file:
        file.write(CORPUS)
    with pytest.raises(InputError, match="changed while it was read"):
        list(pieces)
