"""Packed files are read as they are, and bombs are refused in bounded memory."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest

from regard.errors import DataError
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed

TEXT = b"".join(b"line %d of a text\n" % number for number in range(20_000))


def opened(content: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        gzip.compress(TEXT, mtime=0),
        gzip.compress(TEXT[:5000], mtime=0) + gzip.compress(TEXT[5000:], mtime=0),
        lzma.compress(TEXT),
        lzma.compress(TEXT[:5000]) + lzma.compress(TEXT[5000:]),
        lzma.compress(TEXT[:5000]) + b"\0" * 8 + lzma.compress(TEXT[5000:]) + b"\0" * 4,
    ],
)
def test_the_content_is_the_same(content: bytes) -> None:
    assert decompressed(opened(content), "a").read() == TEXT
    stream = decompressed(opened(content), "a")
    stream.seek(1234)
    assert stream.readline() == TEXT[1234:].split(b"\n")[0] + b"\n"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_damage(pack: object) -> None:
    content = pack(TEXT)  # type: ignore[operator]
    for broken in (content[:-20], content[:40], content[:200] + b"\xff" * 50 + content[250:]):
        with pytest.raises(DECOMPRESSION_ERRORS):
            decompressed(opened(broken), "a").read()


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_bomb_is_refused(pack: object) -> None:
    content = pack(b"\0" * (80 << 20))  # type: ignore[operator]
    stream = decompressed(opened(content), "bomb.gz")
    with pytest.raises(
        DataError, match=r"bomb.gz: decompresses to more than 250 times its size .* decompress it first"
    ):
        stream.seek(80 << 20)
    assert stream.raw.position <= 65 << 20  # type: ignore[attr-defined]


def test_a_small_file_may_be_packed_well() -> None:
    assert len(decompressed(opened(gzip.compress(b"a" * (32 << 20))), "a").read()) == 32 << 20


def test_an_xz_file_that_asks_for_much_memory(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    content = lzma.compress(b"words\n", format=lzma.FORMAT_XZ, filters=filters)
    with pytest.raises(DECOMPRESSION_ERRORS):
        decompressed(opened(content), "a").read()
