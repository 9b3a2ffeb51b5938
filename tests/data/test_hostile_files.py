"""Files that were made to break a reader: errors of regard with the file's name, in bounded time and memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.data.helpers import write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.run import check
from regard.data.readers import read
from regard.errors import DataError, RegardError, did_you_mean


def raised(use: Callable[[], object]) -> Exception | None:
    try:
        use()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a", "text,la\rbel\nx,y\n"),
        ("a.csv", "text,la\rbel\nx,y\nz,w\n"),
        ("a.tsv", "te\rxt\tlabel\nx\ty\n"),
        ("a.csv", "text,label\nx," + "9" * 400 + "\ny,1.5\n"),
        ("a.jsonl", '{"text": "x", "label": ' + "9" * 400 + '}\n{"text": "y", "label": 1.5}\n'),
        ("a.jsonl", '{"text": "x", "label": ' + "9" * 5000 + "}\n"),
        ("a.jsonl", '{"text": "x", "score": 1e999}\n'),
        ("a.json", '[{"text": "x", "label": ' + "9" * 5000 + "}]"),
        ("a.jsonl", '{"text": "x", "label": ' + "[" * 100_000 + "]" * 100_000 + "}\n"),
        ("a.jsonl", '{"text": "\\u0000", "label": ' + "[" * 960 + "]" * 960 + "}\n"),
        ("a.json", '[{"text": "\\u0000", "label": ' + '{"a":' * 960 + "1" + "}" * 960 + "}]"),
        ("a.json", '{"data": ' + "[" * 100_000),
        ("a.csv", "text,label\nx\0y,z\n"),
        ("a.csv", 'text,label\n"x"y,z\n'),
        ("a.csv", 'text,label\n"never closed,z\n' + "word,x\n" * 50),
        ("a.jsonl", '{"text": "\\ud800", "label": "x"}\n'),
        ("a.jsonl", '{"text": "x", "label": "\\udfff"}\n'),
        ("a.jsonl", b'{"text": "\xed\xa0\x80", "label": "x"}\n'),
        ("a.conll", "a B-X\nb\x1cc O\n\x85\n"),
        ("a.csv", "\ufeff\n\ufeff,\n"),
        ("a.xlsx", b"PK\x03\x04" + bytes(300)),
        ("a.csv.gz", gzip.compress(b"text,label\nx,y\n", mtime=0)[:-5]),
        ("a.csv", b"\xff\xfe" + b"\x00\xd8" * 9),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is read as")
def test_only_errors_of_regard(tmp_path: Path, name: str, content: str | bytes) -> None:
    path = write_file(tmp_path / name, content)
    for use in (
        lambda: list(read(path)),
        lambda: check(path),
        lambda: write_fixed_copy(path, tmp_path / "fixed.jsonl"),
    ):
        error = raised(use)
        assert error is None or (isinstance(error, RegardError) and name in str(error) and len(str(error)) < 800)


def test_a_damaged_header_is_not_passed_over(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", b"text,label,\xff\nx,y,z\nu,v,w\n")
    with pytest.raises(DataError, match=r"line 1: byte 12 \(0xFF\) is not UTF-8"):
        list(read(path, columns={"text": "text", "label": "label"}, header=True, on_bad=lambda error: None))


def test_a_bad_number_is_a_bad_row(tmp_path: Path) -> None:
    big = 10**400
    path = write_file(
        tmp_path / "a.jsonl", "".join(json.dumps({"text": "x", "score": n}) + "\n" for n in (1.5, big, 2.5))
    )
    faults: list[DataError] = []
    assert len(list(read(path, labels="number", on_bad=faults.append))) == 2
    assert faults[0].line == 2


def test_what_a_callback_raises_is_its_own(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "text,label\nx,y,z\nu,v\n")

    def stop(error: DataError) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        list(read(path, on_bad=stop))


def test_many_columns(tmp_path: Path) -> None:
    names = ["text", "label", *(f"column{number}" for number in range(20_000))]
    row = ["a text", "x", *("1" for _ in range(20_000))]
    path = write_file(tmp_path / "a.csv", ",".join(names) + "\n" + ",".join(row) + "\n")
    assert len(list(read(path))) == 1
    twice = write_file(tmp_path / "b.csv", ",".join([*names, "column7"]) + "\n" + ",".join([*row, "1"]) + "\n")
    with pytest.raises(DataError, match='two columns are named "column7"'):
        list(read(twice))
    with pytest.raises(DataError, match='no column "colum7"') as caught:
        read(path, columns={"text": "colum7"})
    assert len(str(caught.value)) < 400


def test_many_choices_fit_into_a_message() -> None:
    names = [f"name {number}" for number in range(100_000)]
    assert len(did_you_mean("other", names)) < 2000
    assert "99,940 more" in did_you_mean("other", names)
    assert len(did_you_mean("x" * 100_000, ["y" * 100_000])) < 300


def peak(use: Any) -> int:
    tracemalloc.start()
    try:
        use()
    finally:
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return result


def test_bombs_take_no_memory(tmp_path: Path) -> None:
    bomb = write_file(tmp_path / "a.csv.gz", gzip.compress(b"text,label\n" + b"x" * (200 << 20), 9))

    def use() -> None:
        with pytest.raises(DataError, match=r"a.csv.gz: decompresses to more than 250 times its size"):
            list(read(bomb))

    assert peak(use) < 400 << 20


def test_a_line_of_many_words_takes_no_more_than_a_few_copies(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.txt", "wörd " * (2 << 20))

    def use() -> None:
        assert read(path).schema.format == "text"

    assert peak(use) < 12 * path.stat().st_size
