"""A forward-only stream is read and moved from start to end."""

from __future__ import annotations

import io

import pytest

from regard.text.forward_stream import ForwardStream


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
