"""word2vec's formats, against bytes written by hand as the formats say."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import DataError, InputError
from regard.word_vectors.files import load_vectors, save_vectors
from regard.word_vectors.vectors import WordVectors

WORDS = ("king", "königin", "new_york")
ROWS = [[0.5, -1.25], [3e-30, 2.0], [float(np.float32(0.1)), 7.0]]
TEXT = "3 2\nking 0.5 -1.25\nkönigin 3e-30 2.0\nnew_york 0.1 7.0\n".encode()


def binary(end: bytes = b"\n") -> bytes:
    rows = [word.encode() + b" " + struct.pack("<2f", *row) + end for word, row in zip(WORDS, ROWS, strict=True)]
    return b"3 2\n" + b"".join(rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.txt", TEXT),
        ("v.txt", TEXT.replace(b"\n", b"\r\n")),
        ("v.txt", TEXT.replace(b"7.0\n", b"7.0 \n")),  # word2vec.c ends its lines with a blank
        ("v.txt", TEXT[:-1]),
        ("glove.txt", TEXT[4:]),
        ("v.bin", binary()),
        ("v.bin", binary(b"")),
        ("named-otherwise", binary()),
        ("v.txt.gz", gzip.compress(TEXT, mtime=0)),
        ("v.bin.gz", gzip.compress(binary(), mtime=0)),
    ],
)
def test_what_the_formats_say_is_read(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = load_vectors(path)
    assert result.words == WORDS
    assert np.array_equal(result.table, np.array(ROWS, np.float32))
    assert result.table.dtype == np.float32


def test_what_the_formats_say_is_written(tmp_path: Path) -> None:
    vectors = WordVectors(WORDS, np.array(ROWS, np.float32))
    save_vectors(vectors, tmp_path / "v.bin")
    assert (tmp_path / "v.bin").read_bytes() == binary()
    save_vectors(vectors, tmp_path / "v.vec")
    assert (tmp_path / "v.vec").read_bytes() == TEXT
    assert len(list(tmp_path.iterdir())) == 2


words = st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), min_size=1, max_size=8)
floats = st.floats(width=32, allow_nan=False)


@given(st.dictionaries(words, st.lists(floats, min_size=3, max_size=3), min_size=1, max_size=6))
def test_any_word_and_number_come_back(table: dict[str, list[float]]) -> None:
    vectors = WordVectors(tuple(table), np.array(list(table.values()), np.float32))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("v.bin", "v.txt"):
            save_vectors(vectors, Path(folder) / name)
            result = load_vectors(Path(folder) / name)
            assert result.words == vectors.words
            assert np.array_equal(result.table, vectors.table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no word with numbers"),
        (b"hello\n", "line 1: is no word with numbers"),
        (b"2 2\na 1 2\nb 1\n", "line 3: holds 1 number; expected a word and 2"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3: could not convert"),
        (b"2 2\na 1 2\n\xff 1 2\n", "line 3: is not UTF-8"),
        (b"3 2\na 1 2\nb 1 2\n", "holds 2 vectors of 2 numbers; expected 3 of 2"),
        (b"2 2\na 1 2\na 1 2\n", 'row 2: has "a" twice'),
        (binary()[:-6], "ends in word 3 of 3, which begins at byte 3"),
        (b"9" * 12 + b" 2\n", "ends in word 1 of 999999999999"),
        (b"1 99999999999\n", "says that vectors have 99999999999 numbers"),
        (b"1 0\n", "says that vectors have 0 numbers"),
        (b"1 1\n\xff\xfe \0\0\0\0", "byte 4 that is not UTF-8"),
        (b"0 2\n", "expected|no vector"),
    ],
)
def test_faults_say_where(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_vectors(path)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    vectors = WordVectors(("a", "b c"), np.zeros((2, 2), np.float32))
    with pytest.raises(InputError, match="'b c' cannot be written"):
        save_vectors(vectors, tmp_path / "v.bin")
    with pytest.raises(InputError, match=r"must end in \.bin"):
        save_vectors(vectors, tmp_path / "v.npy")
    with pytest.raises(InputError, match="does not exist"):
        save_vectors(vectors, tmp_path / "none" / "v.bin")
    with pytest.raises(InputError, match="cannot be read"):
        load_vectors(tmp_path / "none.bin")
    damaged = {"v.txt.gz": gzip.compress(TEXT)[:-12], "w.txt.gz": gzip.compress(TEXT)[:10] + b"\xff" * 20}
    damaged["v.txt.xz"] = lzma.compress(TEXT)[:30] + b"\xff" * 20
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="damaged or truncated"):
            load_vectors(tmp_path / name)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", Path("/dev/zero"), tmp_path):
        with pytest.raises(InputError, match=r"is not a regular file|Is a directory"):
            load_vectors(path)
