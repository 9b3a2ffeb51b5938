"""Foreign files: bounded, regular, and every failure an error of regard with the file's name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from regard.errors import DataError, FolderError, InputError
from regard.foreign import file_errors, read_bytes, read_text


class Panic(BaseException):
    """As `tokenizers` raises it: not an `Exception`."""


@pytest.mark.parametrize(
    "error", [ValueError("x" * 100_000), OSError("bad"), MemoryError(), RecursionError(), Panic("a panic"), KeyError(3)]
)
@pytest.mark.parametrize("kind", [FolderError, DataError])
def test_every_failure_names_the_file_and_is_short(
    error: BaseException, kind: type[FolderError] | type[DataError]
) -> None:
    with pytest.raises(kind, match=r"folder/tokenizer\.json") as caught, file_errors("folder/tokenizer.json", kind):
        raise error
    assert len(str(caught.value)) < 400
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [InputError("ours"), KeyboardInterrupt(), SystemExit(2)])
def test_our_own_errors_and_interrupts_pass_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, file_errors("a file"):
        raise error
    assert caught.value is error


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(FolderError, match="not a regular file"):
        read_bytes(tmp_path / "config.json")


def test_a_device_is_refused() -> None:
    with pytest.raises(FolderError, match="not a regular file"):
        read_bytes(Path("/dev/zero"))


def test_a_sparse_giant_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(FolderError, match=r"1,099,511,627,776 bytes"):
        read_bytes(tmp_path / "config.json")


def test_text_with_a_byte_order_mark_and_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}")
    (tmp_path / "b").write_bytes(b"\xff")
    assert read_text(tmp_path / "a") == "{}"
    with pytest.raises(FolderError, match="not UTF-8"):
        read_text(tmp_path / "b")
