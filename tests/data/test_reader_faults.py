"""What cannot be read is said with its file, line and column, or listed and counted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.data.helpers import fields, write_file

from regard.data.readers import read
from regard.errors import DataError, InputError


def pairs(records: Any) -> list[tuple[Any, ...]]:
    return [(record.text, record.label) for record in records]


GOOD = '{"text": "x", "label": "a"}\n'
FAULTS = [
    ("a.csv", "text,label\nx,a\ny\n", {}, 3, None, r"has 1 column \(y\); expected 2 \(text, label\)"),
    ("a.csv", 'text,label\nx,a\n"y,b\n', {}, 3, "1", "a double quote opens here and is not closed up to line 3"),
    ("a.csv", 'text,label\nx,a\n"y"z,b\n', {}, 3, "1", "a closing double quote on line 3 is followed by more"),
    ("a.csv", "text,label\nx,a\ny\rz,b\n", {}, 3, "0", "a carriage return is inside a row"),
    ("a.csv", b"text,label\nx,a\nf\xe9,b\n", {}, 3, None, r"byte 2 \(0xE9\) is not UTF-8; .* --encoding cp1252"),
    ("a.csv", b"text,label\nx,a\ny\0,b\n", {}, 3, None, "character 2 is a NUL"),
    ("a.csv", "text,label\nx,1.5\ny,b\n", {"labels": "number"}, 3, "label", 'is "b"; expected a number'),
    ("a.csv", "text,label\nx,1.5\ny,nan\n", {}, 3, "label", 'is "nan"; expected a number'),
    ("a.csv", "text,label\nx,a\ny,a|b\n", {"labels": "single"}, 3, "label", "expected one label, as in the rows"),
    ("a.tsv", "text\tlabel\nx\ta\ty\n", {}, 2, None, "has 3 columns .*; expected 2 .* quoting=True"),
    ("a.jsonl", GOOD + '{"text": \n', {}, 2, "10", "is not JSON: Expecting value"),
    ("a.jsonl", GOOD + "[1]\n", {}, 2, None, "is a list; expected an object"),
    ("a.jsonl", GOOD + '{"label": "a"}\n', {}, 2, None, r'there is no "text" \(there is label\)'),
    ("a.jsonl", GOOD + '{"text": 5, "label": "a"}\n', {}, 2, "text", r"is 5 \(int\); expected a text"),
    ("a.jsonl", GOOD + '{"text": null, "label": "a"}\n', {}, 2, "text", r"is missing \(null\)"),
    ("a.jsonl", GOOD + '{"text": "y\\u0000", "label": "a"}\n', {}, 2, "text", "character 2 is a NUL"),
    ("a.jsonl", GOOD + '{"text": "\\ud83d", "label": "a"}\n', {}, 2, "text", "half of a surrogate pair .U.D83D"),
    ("a.jsonl", GOOD + '{"text": "y", "label": ["a"]}\n', {"labels": "single"}, 2, "label", "Read with labels=multi"),
    ("a.jsonl", GOOD + "[" * 100_000, {}, 2, None, "is not JSON that can be read"),
    ("a.json", '[{"text": "x", "label": "a"},\n 7]', {}, 2, None, "is a number; expected an object"),
    ("a.json", '[{"text": "x", "label": "a"},\n {"text": }]', {}, 2, "11", "is not JSON: Expecting value"),
    ("a.json", '[{"text": "x", "label": "a"}\n {"text": "y"}]', {}, 2, None, 'expected "]"'),
    ("a.json", b'[{"text": "x", "label": "a"},\n {"text": "\xff"}]', {}, 2, None, "0xFF is not UTF-8"),
    ("a.conll", "a O\nb O\n\nc O O\n", {}, 4, None, r"has 3 columns \(c O O\); expected 2"),
    ("a.conll", "a B-X\nb I-X\n\nc O\nd I-X\n", {}, 5, "tags", 'token 1 "d": "I-X" continues an entity'),
    ("a.jsonl", '{"tokens": ["a"], "tags": [3]}', {}, 1, r"tags\[0\]", "Write the names of tags, not their numbers"),
    ("a.jsonl", '{"tokens": "a b", "tags": ["O"]}', {}, 1, "tags", "2 tokens but 1 tag"),
    ("a.jsonl", '{"text": "ab", "entities": 5}', {}, 1, "entities", "expected a list such as"),
    ("a.jsonl", '{"text": "ab", "entities": [5]}', {}, 1, r"entities\[0\]", 'expected {"start": 0'),
    (
        *("a.jsonl", '{"text": "ab", "entities": [{"start": 0, "end": 9, "label": "X"}]}', {}, 1, "entities"),
        "is not a part of the text",
    ),
    (
        *("a.jsonl", '{"text": "ab", "entities": [{"start": 0, "end": "2", "label": "X"}]}', {}, 1),
        *(r"entities\[0\].end", 'is "2"; expected a whole number'),
    ),
    (
        *("a.jsonl", '{"text": "ab", "entities": [{"start": 0, "end": 2, "label": ""}]}', {}, 1),
        *(r"entities\[0\].label", "expected a name"),
    ),
    (
        *("a.jsonl", '{"text": "ab", "entities": [{"start": 0, "end": 1, "label": "X", "text": "b"}]}', {}, 1),
        *(r"entities\[0\]", 'says "b", but 0 to 1 is "a"'),
    ),
    ("a.csv", "context,question,answers\na b,q,c\n", {}, 2, "answers", 'the answer "c" occurs nowhere in the context'),
    ("a.csv", "context,question,answers\nb b,q,b\n", {}, 2, "answers", "occurs more than once"),
    (
        *("a.jsonl", '{"context": "a bb", "question": "q", "answers": [{"text": "bb", "answer_start": 0}]}', {}, 1),
        *("answers", 'the answer "bb" is not at 0: there is "a ". It occurs at 2'),
    ),
    (
        *("a.jsonl", '{"context": "a", "question": "q", "is_impossible": true, "answers": ["a"]}', {}, 1, "answers"),
        "is marked impossible, but has answers",
    ),
    (
        *("a.jsonl", '{"context": "a", "question": "q", "is_impossible": false, "answers": []}', {}, 1, "answers"),
        "is marked possible, but has no answer",
    ),
    ("a.csv", f"text,entities\na,[]\nb,{'[' * 100_000}\n", {}, 3, "entities", "expected a list such as"),
    ("a.jsonl", '{"context": "a", "question": "q", "answers": 5}', {}, 1, "answers", "expected a list such as"),
    ("a.csv", "context,question,answers,answer_start\na,q,a,²\n", {}, 2, "answers", "expected a whole number"),
    (
        *("a.jsonl", '{"translation": {"en": "a", "de": "b"}}\n{"translation": {"en": "a"}}', {}, 2, None),
        r'there is no "translation.de"',
    ),
    (
        "a.jsonl",
        '{"translation": {"en": "a", "de": "b"}}\n{"translation": 5}',
        {},
        2,
        "translation",
        "an object such as",
    ),
]


@pytest.mark.parametrize(("name", "content", "options", "line", "column", "message"), FAULTS)
def test_a_bad_row_is_named_or_listed(
    tmp_path: Path,
    name: str,
    content: str | bytes,
    options: dict[str, Any],
    line: int,
    column: str | None,
    message: str,
) -> None:
    path = write_file(tmp_path / name, content)
    where = f"line {line}(, row \\d)?" + ("" if column is None else f", column {column}")
    with pytest.raises(DataError, match=f"^{path} {where}: .*{message}"):
        list(read(path, **options))
    assert issubclass(DataError, ValueError)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "", {}, "a.csv: is empty; expected at least one row"),
        ("a.csv", "\ufeff\n \n", {}, "contains only whitespace"),
        ("a.csv", "text,label\n", {}, "has a header but no row"),
        ("a.csv", bytes(range(256)) * 50, {}, "is a binary file"),
        ("a.csv", b"%PDF-1.7", {}, "is a PDF; .*pdftotext"),
        ("a.csv", b"PK\x03\x04abc", {}, "a zip archive or a spreadsheet.*save the sheet as CSV"),
        (
            "a.csv",
            "text,label\nx,y\n".encode("utf-16"),
            {"encoding": "cp1252"},
            "starts with the byte order mark of utf-16-le, but the encoding cp1252 was given",
        ),
        ("a.csv", "text,label\nx,y\n".encode("utf-32-le"), {"encoding": "utf-8"}, "is a binary file"),
        ("a.csv", "text,text,label\nx,y,z\n", {}, 'two columns are named "text"'),
        (
            "a.csv",
            "x,y,z\nu,v,w\n",
            {},
            r"no column with a known name \(the first row is: x . y . z\). Name the columns: --columns",
        ),
        (
            "a.csv",
            "text,x\nu,v\n",
            {"task": "pair"},
            (
                r"no columns for first and second \(task pair\) were recognized among text, x\. "
                r"Name the columns: --columns first=NAME,second=NAME,"
            ),
        ),
        (
            "a.csv",
            "sentence1,label\nu,v\n",
            {},
            r"no column for second was recognized among sentence1, label \(first is sentence1\)\. .*second=NAME",
        ),
        (
            "a.csv",
            "x,y,z\nu,v,w\n",
            {"columns": {"first": "x", "label": "z"}},
            r"no column for second was recognized among x, y, z \(first is x\)\. .*--columns first=NAME,second=NAME",
        ),
        ("a.csv", "review_body,label\nu,v\n", {}, r"no column for text was .* \(label is label\)\. .*text=NAME,label"),
        ("a.csv", "text,lable\nu,v\n", {"columns": {"label": "label"}}, 'no column "label" .* Did you mean "lable"'),
        ("a.csv", "text,label\nu,v\n", {"columns": {"label": "7"}}, 'no column "7"'),
        ("a.txt", "Just words.\n", {"task": "pair"}, "is plain text .*; expected columns for pair"),
        ("a.conll", "a O\n", {"task": "classify"}, "contains tagged words"),
        ("a.conll", "a\nb\n", {}, "has one column; expected a word and its tag"),
        ("a.json", '{"data": [{"paragraphs": []}]}', {"task": "tag"}, "is SQuAD, for the task answer"),
        ("a.json", '{"data": [{"paragraphs": 5}]}', {}, '"paragraphs" is a number; expected an article'),
        ("a.json", '{"data": [{"paragraphs": [{}]}]}', {}, "has no list of questions"),
        ("a.json", '{"a": 5\n}', {}, 'no list under "data"'),
        ("a.json", '{"data": [{"paragraphs": []}]}', {}, "has no usable row"),
        ("a.jsonl", "{}\n", {}, "has no readable row"),
        ("a.parquet", b"PAR1abcdefgh", {}, "is no Parquet file that can be read"),
        ("a.jsonl", '{"translation": {"en": "a"}}', {}, "there are 1 languages in the first row"),
    ],
)
def test_a_bad_file_is_reported(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], message: str
) -> None:
    path = write_file(tmp_path / name, content)
    with pytest.raises(DataError, match=message):
        list(read(path, **options))


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("nowhere.csv", {}, "does not exist"),
        ("datq.csv", {}, 'Did you mean "data.csv"'),
        ("*.tsv", {}, "matches no file"),
        (".", {}, r"holds no file named train, valid or test \(it holds data.csv\)"),
        ("data.csv,nowhere.csv", {}, "nowhere.csv: does not exist"),
        ("data.csv,.", {}, "is a folder; expected a file"),
        ("data.csv", {"task": "clasify"}, 'Did you mean "classify"'),
        ("data.csv", {"format": "cvs"}, 'format: "cvs" is not known. Did you mean "csv"'),
        ("data.csv", {"labels": "many"}, 'labels: "many" is not known'),
        ("data.csv", {"columns": {"txet": "a"}}, '"txet" is not a column role. Did you mean "text"'),
        ("data.csv", {"skip_bad": "data.csv"}, "is the input file"),
        ("data.csv", {"skip_bad": "nowhere/bad.jsonl"}, "does not exist. Make it first"),
        ("data.csv,data.csv", {"task": "tag"}, "two aligned files were given"),
        ("data.csv,data.csv", {"columns": {"source": "xx"}}, 'no file for source="xx"'),
        ([], {}, "no file was given"),
        (("data.csv",), {}, "1 aligned files were given"),
    ],
)
def test_wrong_use_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_file(tmp_path / "data.csv", "text,label\nx,a\n")
    with pytest.raises((DataError, InputError), match=message):
        read(where, **options)


def test_skipped_rows_are_counted_and_listed(tmp_path: Path) -> None:
    content = 'text,label\nx,a\nbad\n"open,a\ny,b\n"w",c\nz,d,e\n'
    path = write_file(tmp_path / "a.csv", content)
    recorded: list[DataError] = []
    reader = read(path, skip_bad=tmp_path / "bad.jsonl", on_bad=recorded.append)
    for _ in range(2):
        recorded.clear()
        assert pairs(reader) == [("x", "a"), ("y", "b"), ("w", "c")]
        assert (reader.rows, reader.bad_rows) == (3, 3)
    listed = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [row["line"] for row in listed] == [error.line for error in recorded] == [3, 4, 7]
    assert [row["raw"] for row in listed] == ["bad\n", '"open,a\n', "z,d,e\n"]
    assert listed[0]["message"].startswith(f"{path} line 3: the row has 1 column (bad); expected 2 (text, label).")
    assert set(listed[0]) == {"file", "line", "row", "column", "problem", "expected", "fix", "message", "raw"}
    with pytest.raises(DataError, match="has no usable row: 1 bad row and no other"):
        list(read(write_file(tmp_path / "b.csv", "text,label\nx\n"), skip_bad=tmp_path / "bad.jsonl"))


def test_skipped_rows_of_parquet_and_aligned_files(tmp_path: Path) -> None:
    rows = pyarrow.table({"text": ["a", None, "c\0", "d"], "label": ["x", "y", "z", "x"]})
    pyarrow.parquet.write_table(rows, tmp_path / "a.parquet")
    recorded: list[DataError] = []
    assert pairs(read(tmp_path / "a.parquet", on_bad=recorded.append)) == [("a", "x"), ("d", "x")]
    assert [(error.row, error.column) for error in recorded] == [(2, "text"), (3, "text")]
    first = write_file(tmp_path / "a.en", b"one\nt\xff\nth\0\nfour\n")
    second = write_file(tmp_path / "a.de", "eins\nzwei\ndrei\nvier\n")
    recorded.clear()
    result = read((first, second), on_bad=recorded.append)
    assert fields(result, "source", "target", "place.line") == [("one", "eins", 1), ("four", "vier", 4)]
    assert [error.line for error in recorded] == [2, 3]
    with pytest.raises(DataError, match=r"a.en: has 4 lines, but .*a.de has 5; expected as many"):
        list(read((first, write_file(second, "1\n2\n3\n4\n5\n")), on_bad=recorded.append))


def test_an_object_is_checked_and_listed_whole_wherever_the_reading_of_its_list_paused(tmp_path: Path) -> None:
    rows = [{"text": "a" * 200_000, "label": "x"}, {"text": "b" * 100_000 + "?", "label": "y"}]
    written = json.dumps(rows).replace("?", r"\ud800")
    path = write_file(tmp_path / "a.json", written)
    assert len(pairs(read(path, skip_bad=tmp_path / "bad.jsonl"))) == 1
    (listed,) = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert "half of a surrogate pair" in listed["message"]
    assert listed["raw"] == written[written.index("}, {") + 3 : -1]


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_a_file_that_changes_is_reported(tmp_path: Path, name: str) -> None:
    rows = ("text,label\n" + f"{'text ' * 50},a\n" * 3_000).encode()
    content = gzip.compress(rows, 1) if name.endswith("gz") else rows
    path = write_file(tmp_path / name, content)
    for change in (lambda: write_file(path, content[:-99]), lambda: write_file(path, content + b"x"), path.unlink):
        write_file(path, content)
        records = iter(read(path))
        next(records)
        change()
        with pytest.raises(DataError, match=f"{name}: changed while it was read"):
            list(records)
