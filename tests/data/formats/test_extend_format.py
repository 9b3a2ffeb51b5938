"""A file format defined outside of the package is read, checked, fixed and trained on like the built-in ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import regard
from regard.cli import main
from regard.data.formats.format import Format, by_suffix
from regard.data.formats.lines import read_lines, strip_line_end
from regard.data.formats.registry import register_format, unregister_format
from regard.data.readers import read
from regard.data.rows import OnBadRow, Place, Row
from regard.data.schema.schema import Schema
from regard.tasks.classify import LabelAnswer


def rows(stream: BinaryIO, name: str, schema: Schema, on_bad: OnBadRow) -> Iterator[Row]:
    for number, line in read_lines(stream, name, on_bad):
        place = Place(name, number)
        pairs = [part.partition("=") for part in strip_line_end(line).split(";")]
        if any(not equals for _, equals, _ in pairs):
            on_bad(place.error("has a part without =", expected="text=…;label=…"), line)
            continue
        yield Row(place, {key: value for key, _, value in pairs}, line)


@contextmanager
def write(path: Path, schema: Schema, style: str) -> Iterator[Callable[[Mapping[str, Any]], str]]:
    with path.open("w", encoding="utf-8") as file:

        def write_row(row: Mapping[str, Any]) -> str:
            file.write(";".join(f"{key}={value}" for key, value in row.items()) + "\n")
            return ""

        yield write_row


KV = Format("kv", suffixes=(".kv",), sniff=by_suffix(".kv"), rows=rows, write=write)


@pytest.fixture(autouse=True)
def kv_format() -> Iterator[None]:
    register_format(KV)
    yield
    unregister_format("kv")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.kv"
    words = {"good": ("great", "fine", "lovely"), "bad": ("dull", "poor", "slow")}
    lines = [
        f"text=a {word} film number {number};label={label}\n"
        for number in range(8)
        for label, several in words.items()
        for word in several
    ]
    path.write_text("".join(lines))
    return path


def test_it_is_read(file: Path) -> None:
    reader = read(file)
    assert str(reader.schema) == "kv for classify (text=text, label=label): the name ends in .kv"
    assert len(list(reader)) == 48
    assert next(iter(read(file, format="kv"))).values[:2] == ["a great film number 0", "good"]


def test_it_is_checked_and_fixed(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text() + "text=a great film number 0;label=good\n")
    copy = tmp_path / "fixed.kv"
    main(["check", str(file), "--fix", str(copy)])
    assert "kv for classify" in capsys.readouterr().out
    assert len(copy.read_text().splitlines()) == 48
    assert copy.read_text().startswith("text=a great film number 0;label=good\n")


def test_it_is_trained_on(file: Path, tmp_path: Path) -> None:
    result = regard.train(file, preset="ngram", out=tmp_path / "run")
    assert result.task == "classify"
    (answer,) = regard.load(tmp_path / "run", device="cpu").predict(["a lovely film"])
    assert isinstance(answer, LabelAnswer)
    assert answer.label in ("good", "bad")
