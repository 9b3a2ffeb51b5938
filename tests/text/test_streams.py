"""Text files in chunks, forward only, and packed ones in bounded memory."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.corpus import CORPUS, SENTENCES, trained

from regard.errors import DataError, InputError
from regard.progress import Progress
from regard.text.decompress import DECOMPRESSION_ERRORS, decompressed
from regard.text.forward_stream import ForwardStream
from regard.text.learn import train_tokenizer, train_tokenizer_from_texts
from regard.text.text_files import CHUNK, first_lines, read_chunks, split_chunks

# Text files are read in chunks, plain or compressed.


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


# A forward-only stream is read and moved from start to end.


class Count(ForwardStream):
    """The bytes 0 to 255, again and again, up to a size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def _read(self, size: int) -> bytes:
        end = min(self.position + size, self.size)
        return bytes(number % 256 for number in range(self.position, end))


def test_read_and_seek_forward() -> None:
    stream = Count(200_000)
    assert stream.readable()
    assert stream.seekable()
    assert stream.read(3) == b"\x00\x01\x02"
    assert stream.seek(100_000) == stream.tell() == 100_000
    assert stream.read(1) == bytes([100_000 % 256])
    assert stream.seek(300_000) == 200_000
    assert stream.read() == b""


def test_seek_back_is_refused() -> None:
    stream = Count(100)
    stream.seek(50)
    with pytest.raises(io.UnsupportedOperation, match="forward"):
        stream.seek(10)
    with pytest.raises(io.UnsupportedOperation, match="forward"):
        stream.seek(0, io.SEEK_END)


# Packed files are read as they are, and bombs are refused in bounded memory.


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
