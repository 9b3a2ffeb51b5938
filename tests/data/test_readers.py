"""Rows written in a format are read back as they were; what cannot be read is said with its line and column."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.data.fields import fields

from regard.data.readers import read, split_names
from regard.data.records import (
    AnswerRecord,
    AnswerSpan,
    ClassifyRecord,
    DocumentRecord,
    PairRecord,
    Place,
    TagRecord,
    TranslateRecord,
)
from regard.data.schema.columns import check_roles, parse_columns
from regard.errors import DataError, InputError

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\t"), max_size=30)
WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\t #-"), min_size=1, max_size=8)
LABEL = st.sampled_from(["yes", "no", "может"])
ROWS = st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=6)
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(rows: Sequence[tuple[str, ...]], header: tuple[str, ...], **settings: Any) -> str:
    out = io.StringIO()
    csv.writer(out, **settings).writerows([header, *rows])
    return out.getvalue()


def pairs(records: Any) -> list[tuple[Any, ...]]:
    return [(record.text, record.label) for record in records]


@same_folder
@given(ROWS, st.sampled_from([",", ";", "\t"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_quoted_tables_come_back(tmp_path: Path, rows: list[tuple[str, str]], delimiter: str, quoting: int) -> None:
    path = tmp_path / ("data.tsv" if delimiter == "\t" else "data.csv")
    put(path, table(rows, ("text", "label"), delimiter=delimiter, quoting=quoting))
    assert pairs(read(path)) == rows


@same_folder
@given(st.lists(st.tuples(LINE, LABEL), min_size=1, max_size=6))
def test_tables_without_quoting_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = put(tmp_path / "data.tsv", "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows]))
    assert pairs(read(path, quoting=False)) == rows


@same_folder
@given(ROWS, st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_json_comes_back(tmp_path: Path, rows: list[tuple[str, str]], ascii: bool, bom: str) -> None:
    objects = [{"text": text, "label": label} for text, label in rows]
    lines = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in objects)
    assert pairs(read(put(tmp_path / "data.jsonl", bom + lines))) == rows
    for indent in (None, 2):
        whole = json.dumps(objects, ensure_ascii=ascii, indent=indent)
        assert pairs(read(put(tmp_path / "data.json", bom + whole))) == rows
    nested = json.dumps({"version": [1, {"data": 2}], "data": objects}, ensure_ascii=ascii)
    assert pairs(read(put(tmp_path / "nested.json", bom + nested))) == rows


@same_folder
@given(ROWS)
def test_parquet_comes_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    assert pairs(read(tmp_path / "data.parquet")) == rows


@same_folder
@given(st.lists(st.lists(st.tuples(WORD, st.sampled_from(["O", "B-X", "B-Y"])), min_size=1), min_size=1, max_size=4))
def test_conll_comes_back(tmp_path: Path, sentences: list[list[tuple[str, str]]]) -> None:
    for blank in (" ", "\t"):
        text = "\n".join("".join(f"{word}{blank}{tag}\n" for word, tag in sentence) for sentence in sentences)
        found = read(put(tmp_path / "data.conll", text))
        assert [
            list(zip(tokens, tags or (), strict=True)) for tokens, tags in fields(found, "tokens", "tags")
        ] == sentences
    rows = [json.dumps({"tokens": [w for w, _ in one], "tags": [t for _, t in one]}) for one in sentences]
    found = read(put(tmp_path / "data.jsonl", "\n".join(rows)))
    assert [list(zip(tokens, tags or (), strict=True)) for tokens, tags in fields(found, "tokens", "tags")] == sentences


@same_folder
@given(st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), min_size=1, max_size=4))
def test_questions_come_back(tmp_path: Path, parts: list[tuple[str, str, str, str]]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": str(number),
            "context": before + answer + after,
            "question": question,
            "answers": [{"text": answer, "answer_start": len(before)}] if answer else [],
        }
        for number, (before, answer, after, question) in enumerate(parts)
    ]
    wanted = [
        (
            row["id"],
            row["context"],
            row["question"],
            tuple(AnswerSpan(a["text"], a["answer_start"]) for a in row["answers"]),
        )
        for row in rows
    ]
    article = {"title": "t", "paragraphs": [{"context": r["context"], "qas": [r]} for r in rows]}
    put(tmp_path / "squad.json", json.dumps({"version": "1", "data": [article]}))
    put(tmp_path / "flat.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    cells = [(r["id"], r["context"], r["question"], json.dumps(r["answers"])) for r in rows]
    put(tmp_path / "flat.csv", table(cells, ("id", "context", "question", "answers")))
    for name in ("squad.json", "flat.jsonl", "flat.csv"):
        found = read(tmp_path / name)
        assert found.schema.task == "answer"
        assert fields(found, "id", "context", "question", "answers") == wanted


@same_folder
@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=6))
def test_translations_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    assume(not rows[0][0].startswith("\ufeff") and not rows[0][1].startswith("\ufeff"))
    first = put(tmp_path / "a.en", "".join(f"{source}\n" for source, _ in rows))
    second = put(tmp_path / "a.de", "".join(f"{target}\n" for _, target in rows))
    objects = [{"translation": {"en": source, "de": target}} for source, target in rows]
    lines = put(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in objects))
    tabs = put(tmp_path / "a.tsv", "".join(f"{source}\t{target}\n" for source, target in [("en", "de"), *rows]))
    sources: list[tuple[Any, dict[str, Any]]] = [((first, second), {}), (f"{first},{second}", {}), (lines, {})]
    for where, options in (*sources, (tabs, {"quoting": False})):
        found = read(where, **options)
        assert dict(found.schema.columns, translation="") == {"source": "en", "target": "de", "translation": ""}
        assert fields(found, "source", "target") == rows
    swapped = read((first, second), columns={"source": "de"})
    assert fields(swapped, "target", "source") == rows
    assert fields(read(lines, columns={"source": "de", "target": "en"}), "target", "source") == rows


@same_folder
@given(st.lists(st.lists(LINE.filter(str.strip), min_size=1, max_size=3), min_size=1, max_size=4))
def test_documents_come_back(tmp_path: Path, documents: list[list[str]]) -> None:
    assume(not documents[0][0].startswith("\ufeff"))
    wanted = ["\n".join(lines) for lines in documents]
    path = put(tmp_path / "data.txt", "\n\n".join(wanted))
    assert fields(read(path, format="text"), "text") == wanted
    crlf = put(tmp_path / "crlf.txt", "\r\n\r\n".join(wanted).replace("\r\n", "\n").replace("\n", "\r\n"))
    assert fields(read(crlf, format="text"), "text") == wanted
    assert fields(read(path, format="lines"), "text") == "\n\n".join(wanted).split("\n")


PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl", "data.parquet", "data"])
def test_packed_files_and_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, packed: str) -> None:
    rows = [("one\ntwo", "yes"), ("drei", "no")]
    out = io.BytesIO()
    if name.endswith("parquet"):
        pyarrow.parquet.write_table(pyarrow.table({"text": ["one\ntwo", "drei"], "label": ["yes", "no"]}), out)
    elif name.endswith("jsonl"):
        out.write(b"".join(json.dumps({"text": t, "label": label}).encode() + b"\n" for t, label in rows))
    else:
        out.write(table(rows, ("text", "label"), delimiter="\t" if "tsv" in name else ",").encode())
    content = PACK[packed](out.getvalue())
    reader = read(put(tmp_path / (name + packed), content))
    assert pairs(reader) == pairs(reader) == rows
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    reader = read("-", format="tsv" if "tsv" in name else None)
    assert pairs(reader) == rows
    if not name.endswith("parquet"):
        with pytest.raises(DataError, match="stdin: can be read only once"):
            list(reader)
    if packed:
        with pytest.raises(DataError, match="cut short or damaged"):
            list(read(put(tmp_path / (name + packed), content[:-9])))


def test_folders_globs_and_lists(tmp_path: Path) -> None:
    for name in ("train-v1", "dev", "test"):
        put(tmp_path / f"{name}.csv", f"text,label\n{name},a\n")
    put(tmp_path / "test.csv", "label,text\na,test\n")  # another order
    put(tmp_path / "notes.md", "not data")
    assert split_names(tmp_path) == ("train", "valid", "test")
    assert fields(read(tmp_path), "text") == ["train-v1"]
    assert fields(read(tmp_path, split="valid"), "text") == ["dev"]
    assert fields(read(f"{tmp_path}/*.csv"), "text") == ["dev", "test", "train-v1"]
    files = [tmp_path / "test.csv", tmp_path / "dev.csv"]
    reader = read(files)
    assert fields(reader, "text") == ["test", "dev"]
    assert reader.rows == 2
    assert [record.place for record in reader] == [Place(str(file), 2) for file in files]


def test_aligned_files_in_a_folder(tmp_path: Path) -> None:
    for name in ("train.en.gz", "train.de.gz"):
        put(tmp_path / name, gzip.compress(f"{name}\n".encode()))
    assert fields(read(tmp_path), "source", "target") == [("train.de.gz", "train.en.gz")]
    assert fields(read(tmp_path, columns={"source": "en"}), "source") == ["train.en.gz"]


@pytest.mark.parametrize(
    ("name", "content", "told", "wanted"),
    [
        ("a.csv", "text,label\nx,1.5\ny,2\n", {}, [("x", 1.5), ("y", 2.0)]),
        ("a.csv", "text,score\nx,1\ny,2\n", {}, [("x", 1.0), ("y", 2.0)]),
        ("a.csv", "text,label\nx,1\ny,0\n", {}, [("x", "1"), ("y", "0")]),
        ("a.csv", "text,label\nx,1\ny,\n", {}, [("x", "1"), ("y", None)]),
        ("a.csv", "text,label\nx,a|b\ny,a\nz,\n", {}, [("x", ("a", "b")), ("y", ("a",)), ("z", ())]),
        ("a.csv", "text,label\nx,a|b\ny,a\n", {"labels": "class"}, [("x", "a|b"), ("y", "a")]),
        ("a.csv", 'text,label\nx,"[""a"", ""b""]"\n', {}, [("x", ("a", "b"))]),
        ("a.jsonl", '{"text": "x", "label": ["a"]}\n{"text": "y", "label": []}', {}, [("x", ("a",)), ("y", ())]),
        ("a.jsonl", '{"text": "x", "label": 3}\n{"text": "y", "label": true}', {}, [("x", "3"), ("y", "true")]),
        ("a.csv", "review,stars\nx,5\n", {"columns": {"text": "review", "label": "stars"}}, [("x", "5")]),
        ("a.csv", "phrase,mood\nx,good\n", {"columns": {"text": "phrase", "label": 1}}, [("x", "good")]),
        ("a.tsv", "s\t1\t\tx y\n", {"columns": {"label": "1", "text": "3"}}, [("x y", "1")]),
        ("a.tsv", "x y\tpos\nz w\tneg\nu v\tpos\nw v\tneg\n", {}, [("x y", "pos"), ("z w", "neg")]),
        ("a.tsv", "phrase\tmood\nx y\tpos\nz w\tneg\nu v\tpos\nw v\tneg\n", {}, [("x y", "pos"), ("z w", "neg")]),
        ("a.csv", "\ufefftext,label\r\nx,a\r\n\r\n", {}, [("x", "a")]),
        ("a.csv", "text\nx\ny\n", {"task": "classify"}, [("x", None), ("y", None)]),
        ("a.tsv", 'text\tlabel\n"x" y\t1\n" z\t0\n', {}, [('"x" y', "1"), ('" z', "0")]),
    ],
)
def test_labels_and_columns(tmp_path: Path, name: str, content: str, told: dict[str, Any], wanted: list[Any]) -> None:
    assert pairs(read(put(tmp_path / name, content), **told))[: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("name", "content", "format", "task", "columns"),
    [
        ("a.csv", "premise,hypothesis,label\na,b,c\n", "csv", "pair", "first=premise, second=hypothesis, label=label"),
        (
            "a.tsv",
            "question\tsentence\tlabel\na\tb\tc\n",
            "tsv",
            "pair",
            "first=question, second=sentence, label=label",
        ),
        ("a.tsv", "#1 String\t#2 String\tQuality\na\tb\t1\n", "tsv", "pair", "first=#1 String, second=#2 String"),
        ("a.tsv", "Good day.\tBuen día.\nGo on.\tSigue.\n", "tsv", "translate", "source=0, target=1"),
        ("a.txt", "EU B-ORG\nsays O\n\nHi O\n", "conll", "tag", "tokens=0, tags=1"),
        ("a.tsv", "EU\tB-ORG\nsays\tO\n\nHi\tO\n", "conll", "tag", "tokens=0, tags=1"),
        ("a.txt", "Once upon a time.\nMore.\n\nAgain.\n", "text", "text", "text=text"),
        ("a.jsonl", '{"text": "x"}\n', "jsonl", "text", "text=text"),
        ("a", '{"text": "x", "entities": []}\n', "jsonl", "tag", "entities=entities, text=text"),
        ("a.txt", "text\tlabel\nx\ty\n", "tsv", "classify", "text=text, label=label"),
        ("a", "label,text\nx,y\n", "csv", "classify", "text=text, label=label"),
        ("a.json", '[{"src": "a", "tgt": "b"}]', "json", "translate", "source=src, target=tgt"),
    ],
)
def test_format_and_task_are_recognised_and_said(
    tmp_path: Path, name: str, content: str, format: str, task: str, columns: str
) -> None:
    reader = read(put(tmp_path / name, content))
    assert (reader.schema.format, reader.schema.task) == (format, task)
    assert str(reader.schema).startswith(f"{format} for {task} ({columns}")
    assert reader.schema.reason
    assert list(reader)


def test_columns_that_are_not_used_are_said(tmp_path: Path) -> None:
    reader = read(put(tmp_path / "a.csv", "\n\nid;text;label;when\n1;x;y;z\n"))
    assert str(reader.schema).endswith("unused columns: id, when")
    assert pairs(reader) == [("x", "y")]


def test_every_kind_of_record(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "a"), 1)
    lines: list[tuple[dict[str, Any], Any]] = [
        ({"text": "a", "label": "b"}, ClassifyRecord("a", "b", place=place)),
        ({"premise": "a", "hypothesis": "b", "label": "c"}, PairRecord("a", "b", "c", place=place)),
        (
            {"text": "in Rome", "entities": [{"start": 3, "end": 7, "label": "LOC", "text": "Rome"}]},
            TagRecord("in Rome", ((0, 2), (3, 7)), ("O", "B-LOC"), place=place),
        ),
        (
            {"context": "a b", "question": "c", "answers": "b"},
            AnswerRecord("1", "a b", "c", (AnswerSpan("b", 2),), place=place),
        ),
        (
            {"context": "b b", "question": "c", "answers": {"text": ["b"], "answer_start": [2]}},
            AnswerRecord("1", "b b", "c", (AnswerSpan("b", 2),), place=place),
        ),
        ({"context": "a", "question": "c"}, AnswerRecord("1", "a", "c", place=place)),
        ({"en": "a", "de": "b"}, TranslateRecord("a", "b", place=place)),
        ({"text": "a"}, DocumentRecord("a", place=place)),
    ]
    for values, wanted in lines:
        assert list(read(put(tmp_path / "a", json.dumps(values)))) == [wanted]


def test_squad_two_and_groups(tmp_path: Path) -> None:
    questions = [
        {"id": "1", "question": "q", "answers": [{"text": "b", "answer_start": 2}], "is_impossible": False},
        {"id": "2", "question": "r", "answers": [], "is_impossible": True, "plausible_answers": [{"text": "x"}]},
    ]
    content = {"data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": questions}]}]}
    found = list(read(put(tmp_path / "dev-v2.0.json", json.dumps(content))))
    assert fields(found, "id", "answerable", "group") == [("1", True, "T"), ("2", False, "T")]
    path = put(tmp_path / "a.csv", "text,label,user\nx,a,u1\n")
    assert [record.group for record in read(path, columns={"group": "user"})] == ["u1"]


def test_tags_are_kept_as_iob2(tmp_path: Path) -> None:
    content = "-DOCSTART- O\n\n# sent_id = 1\nNew I-LOC\nYork I-LOC\nRome B-LOC\n\n# O\n"
    reader = read(put(tmp_path / "a.conll", content))
    assert fields(reader, "tags") == [("B-LOC", "I-LOC", "B-LOC"), ("O",)]
    assert reader.schema.scheme == "iob1"
    packed = put(tmp_path / "c.conll", "Rome B-LOC\n-DOCSTART- O\nParis B-LOC\n\nhere O\n")  # no blank lines around it
    assert fields(read(packed), "tokens") == [("Rome",), ("Paris",), ("here",)]  # of two documents
    three = put(tmp_path / "b.conll", "1 New B-LOC x\n2 York E-LOC y\n")
    (record,) = read(three, columns={"token": 1, "tag": 2}, scheme="BIOES")
    assert isinstance(record, TagRecord)
    assert (record.tokens, record.tags) == (("New", "York"), ("B-LOC", "I-LOC"))
    (record,) = read(put(tmp_path / "c.jsonl", '{"tokens": ["a"], "tags": ["NOUN"]}'))
    assert isinstance(record, TagRecord)
    assert record.tags == ("NOUN",)


def test_another_file_is_read_like_the_first(tmp_path: Path) -> None:
    first = read(put(tmp_path / "train.csv", "text,label\nx,a|b\n"))
    second = put(tmp_path / "dev.csv", "text,label\ny,a\n")
    assert pairs(read(second)) == [("y", "a")]
    assert pairs(read(second, like=first.schema)) == [("y", ("a",))]
    assert pairs(read([tmp_path / "train.csv", second])) == [("x", ("a", "b")), ("y", ("a",))]


def test_roles_have_a_singular() -> None:
    assert check_roles({"token": 0, "tag": "3"}) == {"tokens": "0", "tags": "3"}
    assert parse_columns("first=#1 String,label=3") == {"first": "#1 String", "label": "3"}
    for wrong in ("text", "text=", "=a", ""):
        with pytest.raises(InputError, match="is not ROLE=NAME"):
            parse_columns(wrong)


def test_squad_articles_need_no_title_and_stay_apart(tmp_path):
    def article(number):
        answers = [{"text": "1901", "answer_start": 0}]
        question = {"id": str(number), "question": "When?", "answers": answers}
        return {"paragraphs": [{"context": "1901 it was.", "qas": [question]}]}

    path = tmp_path / "untitled.json"
    path.write_text(json.dumps({"version": "1.1", "data": [article(1), article(2)]}))
    first, second = read(path)
    assert first.group
    assert second.group
    assert first.group != second.group
