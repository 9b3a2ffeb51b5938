"""Data files: tables, JSON, SQuAD, CoNLL, Parquet, workbooks, packed or in other encodings, read, checked and fixed."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from tests.fuzz.mutate import damaged, damaged_json

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.page import html_page
from regard.data.check.run import check
from regard.data.readers import read
from regard.data.sources.sources import Source
from regard.errors import RegardError

CELLS = (
    *("", " ", "x", "text", "label", "a text, with a comma", 'a "quoted" word', "one\ntwo", "one\rtwo", "tab\there"),
    *("café", "Größe – 80 €", "日本語", "\ufeffmark", "\u2028", "a\u200bb", "cafÃ©", "3,5", "1.234,5", "-1e9", "nan"),
    *("9" * 400, "1" * 5000, "billing, login", "a|b", '["a", "b"]', '{"a": 1}', "[" * 2000, "B-PER", "=1+1", "\\N"),
    *("<script>", "'; --", "\x1b[31m", "\x85", "word " * 300, "sep=;", "#", "-DOCSTART-", "null", "True"),
)
SENTENCES = ("the soup was warm", "nobody answered", "a lovely garden", "we came back", "it rained all day")
NAMES = ("text", "label", "review", "stars", "sentence1", "sentence2", "tokens", "tags", "", "id", "text ", "score")
CODECS = (
    "cp1252",
    "latin-1",
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "utf-32",
    "utf-8-sig",
    "cp1251",
    "shift_jis",
    "utf-7",
)
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "conll", "text", "lines")
TASKS = ("classify", "pair", "tag", "answer", "translate", "text", "minimal", "embed")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".conll", ".txt", ".xlsx", "", ".ndjson", ".tab")


def _cell(draw: random.Random) -> str:
    return draw.choice(CELLS) if draw.random() < 0.25 else f"{draw.choice(SENTENCES)} {draw.randrange(99)}"


def _rows(draw: random.Random) -> list[list[str]]:
    width = draw.choice((1, 2, 2, 2, 3, 5, 40))
    names = ["text", "label", "id", "note", "score"][:width] if draw.random() < 0.7 else []
    names += [draw.choice(NAMES) for _ in range(width - len(names))]
    rows = [[_cell(draw) for _ in range(width)] for _ in range(draw.randrange(1, 30))]
    for row in rows:
        if width > 1 and draw.random() < 0.9:
            row[1] = draw.choice(("good", "bad", "1", "2,5", "a|b"))
        if draw.random() < 0.03:
            row.append(_cell(draw))
    return [names, *rows] if draw.random() < 0.9 else rows


def _csv(draw: random.Random, delimiter: str | None = None) -> bytes:
    parts = delimiter or draw.choice((",", ",", ";", "\t", "|"))
    end = draw.choice(("\n", "\n", "\r\n", "\r"))

    def cell(value: str) -> str:
        quote = draw.random() < 0.05 or (any(letter in value for letter in f'{parts}"\r\n') and draw.random() < 0.97)
        return '"' + value.replace('"', '""') + '"' if quote else value

    first = f"sep={parts}{end}" if draw.random() < 0.1 else ""
    return (first + "".join(parts.join(map(cell, row)) + end for row in _rows(draw))).encode()


def _tsv(draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return _csv(draw, "\t")
    return "".join("\t".join(row) + "\n" for row in _rows(draw)).encode()


def _objects(draw: random.Random) -> list[dict[str, Any]]:
    kind = draw.randrange(6)
    results: list[dict[str, Any]] = []
    for number in range(draw.randrange(1, 12)):
        text = _cell(draw)
        entity = {"start": draw.randrange(4), "end": draw.randrange(12), "label": "PER"}
        kinds: list[dict[str, Any]] = [
            {"text": text, "label": draw.choice(("a", "b", 1, 2.5, True, None, ["a"], ["a", "b"], 10**400))},
            {"text": text, "entities": [entity]},
            {"tokens": text.split(), "tags": ["O"] * len(text.split())},
            {"translation": {"en": text, "de": _cell(draw)}},
            {"id": number, "context": text, "question": "who?", "answers": {"text": ["a"], "answer_start": [0]}},
            {"text": text, "label": [[0, 2, "ORG"]]},
        ]
        results.append(kinds[kind])
    return results


def _jsonl(draw: random.Random) -> bytes:
    if draw.random() < 0.3:
        return b"\n".join(damaged_json(draw, one) for one in _objects(draw))
    return "\n".join(json.dumps(one, ensure_ascii=draw.random() < 0.5) for one in _objects(draw)).encode()


def _json(draw: random.Random) -> bytes:
    value = draw.choice((lambda: _objects(draw), lambda: {"data": _objects(draw)}, lambda: _squad(draw)))()
    return (
        damaged_json(draw, value) if draw.random() < 0.5 else json.dumps(value, indent=draw.choice((None, 1))).encode()
    )


def _squad(draw: random.Random) -> dict[str, Any]:
    def question() -> dict[str, Any]:
        answers = [{"text": draw.choice(("soup", "warm", "x")), "answer_start": draw.randrange(20)}]
        return {"id": str(draw.randrange(9)), "question": _cell(draw), "answers": answers, "is_impossible": False}

    paragraphs = [{"context": draw.choice(SENTENCES), "qas": [question() for _ in range(3)]} for _ in range(3)]
    return {"version": "1.1", "data": [{"title": "T", "paragraphs": paragraphs}]}


def _conll(draw: random.Random) -> bytes:
    gap = draw.choice((" ", "\t"))
    lines = []
    for _ in range(draw.randrange(1, 40)):
        word = draw.choice(
            ("Ada", "sang", "in", "New York", "日本", "a\u200bb", "\ufeffx", "#", "", "-DOCSTART-", "x\ry")
        )
        tag = draw.choice(("O", "O", "B-PER", "I-PER", "B-LOC", "S-LOC", "X", "L-PER", ""))
        lines.append(draw.choice((f"{word}{gap}{tag}", f"{word}{gap}NN{gap}{tag}", f"{word}{gap}{tag}", "")))
    return "\n".join(lines).encode()


def _text(draw: random.Random) -> bytes:
    return "".join(_cell(draw) + draw.choice(("\n", "\n\n", "\r\n", " ", "\n\u200b\n")) for _ in range(20)).encode()


def _parquet(draw: random.Random) -> bytes:
    out = io.BytesIO()
    columns: dict[str, Any] = {}
    for name in ("text", "label", "more")[: draw.randrange(1, 4)]:
        values = [draw.choice((_cell(draw), None)) if draw.random() < 0.1 else _cell(draw) for _ in range(9)]
        columns[name] = draw.choice((values, [[1, 2]] * 9, [{"a": 1}] * 9)) if name == "more" else values
    packing = draw.choice(("snappy", "gzip", "none", "zstd"))
    pyarrow.parquet.write_table(pyarrow.table(columns), out, compression=packing, row_group_size=draw.choice((2, 100)))
    return out.getvalue()


def _workbook(draw: random.Random) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in _rows(draw):
        with contextlib.suppress(Exception):  # characters that no cell may hold
            book.active.append(
                [draw.choice((value, 1, 2.5, True, None)) if draw.random() < 0.1 else value for value in row]
            )
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _damaged_workbook(draw: random.Random, content: bytes) -> bytes:
    """One part of the archive changed, so that its parser sees the damage."""
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        parts = old.infolist()
        hit = draw.choice(parts)
        for part in parts:
            inner = old.read(part)
            new.writestr(part.filename, damaged(draw, inner) if part is hit else inner)
    return out.getvalue()


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _jsonl,
    ".json": _json,
    ".conll": _conll,
    ".txt": _text,
    ".parquet": _parquet,
    ".xlsx": _workbook,
}


def prepare() -> None:
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for suffix, make in MAKERS.items():
            path = Path(folder, f"a{suffix}")
            path.write_bytes(make(draw))
            with contextlib.suppress(RegardError):
                html_page(check(path), name="a")


def fuzz(draw: random.Random, folder: Path) -> None:
    before, tempfile.tempdir = tempfile.tempdir, str(folder)  # packed Parquet is laid down there
    try:
        path, content = _file(draw, folder)
        _use(draw, path, content)
    finally:
        tempfile.tempdir = before


def _file(draw: random.Random, folder: Path) -> tuple[Path, bytes]:
    suffix = draw.choice(list(MAKERS))
    content = MAKERS[suffix](draw)
    if suffix == ".xlsx" and draw.random() < 0.5:
        content = _damaged_workbook(draw, content)
    if draw.random() < 0.25 and suffix not in (".parquet", ".xlsx"):
        content = content.decode("utf-8", "replace").encode(draw.choice(CODECS), "replace")
    if draw.random() < 0.6:
        content = damaged(draw, content)
    packed = draw.random()
    if packed < 0.1:
        content = gzip.compress(content) if packed < 0.05 else lzma.compress(content)
        content = damaged(draw, content) if draw.random() < 0.3 else content
    name = suffix if draw.random() < 0.85 else draw.choice(SUFFIXES)
    path = folder / f"data{name}{draw.choice(('', '', '', '.gz', '.xz')) if packed < 0.15 else ''}"
    path.write_bytes(content)
    return path, content


def _use(draw: random.Random, path: Path, content: bytes) -> None:
    options: dict[str, Any] = {}
    if draw.random() < 0.15:
        options["encoding"] = draw.choice(CODECS)
    if draw.random() < 0.1:
        options["format"] = draw.choice(FORMATS)
    if draw.random() < 0.15:
        options["task"] = draw.choice(TASKS)
    if draw.random() < 0.15:
        options["columns"] = {draw.choice(("text", "label", "first")): draw.choice((*NAMES, "0", "1"))}
    with contextlib.suppress(RegardError):
        list(read(path, **options))
    with contextlib.suppress(RegardError):
        list(read(path, skip_bad=path.with_name("bad.jsonl"), **options))
    with contextlib.suppress(RegardError):
        json.dumps(check(path, **options).as_json())
    with contextlib.suppress(RegardError):
        fixed = path.with_name(f"fixed{draw.choice((path.suffix, '.csv', '.tsv', '.jsonl', '.parquet'))}")
        if write_fixed_copy(path, fixed, **options).rows:
            list(read(fixed, encoding="utf-8", columns=options.get("columns")))
    _check_encoding(path, content)


def _check_encoding(path: Path, content: bytes) -> None:
    """What is valid UTF-8 text is read as UTF-8."""
    if b"\0" in content or content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    with contextlib.suppress(RegardError, UnicodeDecodeError):
        content.decode()
        assert Source(path).detected_encoding().name == "utf-8"
