"""A fixed copy: what is fixed, in every format, and read again before it replaces its target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.helpers import fields, write_file

from regard import cli
from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.rules.mojibake import clean
from regard.data.check.run import check
from regard.data.readers import read
from regard.errors import DataError, FolderError, InputError

TABLE = (
    "id,text,label\n"
    '1,"a cafÃ© by the sea, and more",pos\n'
    "2,the door\u200b was shut all day,neg \n"
    "3,,pos\n"
    "4,it rained for a week in May,neg\n"
    "4,it rained for a week in May,neg\n"
    "5,a bird with a NU\0L in it,pos\n"
    "6,too,many,columns\n"
    "7,the sea was calm at noon,psitive\n"
)


def test_table_keeps_its_columns_and_lists_changes(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", TABLE)
    done = write_fixed_copy(path, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == (
        "id,text,label\n"
        '1,"a café by the sea, and more",pos\n'
        "2,the door was shut all day,neg\n"
        "4,it rained for a week in May,neg\n"
        "5,a bird with a NUL in it,pos\n"
        "7,the sea was calm at noon,psitive\n"
    )
    assert done.rows == 5
    assert dict(done.changes) == {
        "texts with encoding damage repaired": 2,
        "labels with spaces around them trimmed": 1,
        "NUL characters removed": 1,
        "empty rows removed": 1,
        "duplicate rows removed": 1,
    }
    assert done.left_out == ("line 8: the row has 4 columns (6 | too | many | columns)",)
    assert path.read_text(encoding="utf-8") == TABLE


def test_fixed_copy_has_no_findings(tmp_path: Path) -> None:
    write_fixed_copy(write_file(tmp_path / "a.csv", TABLE), tmp_path / "b.csv")
    assert check(tmp_path / "b.csv").findings == ()


def test_row_without_tags_is_kept(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.jsonl", '{"tokens": ["a"], "tags": ["I-X"]}\n{"tokens": ["b"]}\n')
    assert write_fixed_copy(path, tmp_path / "b.jsonl", scheme="iob2").rows == 2
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[1]) == {"tokens": ["b"]}


def test_copy_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "text,label\nx,a\n")
    with pytest.raises(FolderError, match="cannot be written"):
        write_fixed_copy(path, tmp_path / "nowhere" / "b.csv")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv"]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(WORDS, st.sampled_from(["a", "b"])), min_size=1, max_size=6))
def test_nothing_else_is_changed(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("fix")
    content = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    write_fixed_copy(write_file(folder / "a.jsonl", content), folder / "b.jsonl")
    stored = [json.loads(line) for line in (folder / "b.jsonl").read_text(encoding="utf-8").split("\n") if line]
    expected = dict.fromkeys((clean(text), label) for text, label in rows if clean(text).strip())
    assert {(row["text"].strip(), row["label"]) for row in stored} == {
        (text.strip(), label) for text, label in expected
    }


def test_sentences_without_tags(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_bytes(b"\xff NN B-PER\n\nAda NN\nsang VB\n\nin IN\nBath NN\n")
    with pytest.raises(DataError, match='there is no column "tags"'):
        write_fixed_copy(path, tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_entities_move_with_their_text(tmp_path: Path) -> None:
    text = "the cafÃ© of Ada Hill in Bath"
    start = text.index("Ada")
    row: dict[str, Any] = {"text": text, "entities": [{"start": start, "end": start + 9, "label": "PER"}]}
    path = write_file(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    done = write_fixed_copy(path, tmp_path / "b.jsonl")
    fixed = json.loads((tmp_path / "b.jsonl").read_text(encoding="utf-8"))
    assert fixed["text"] == "the café of Ada Hill in Bath"
    assert fixed["entities"] == [{"start": 12, "end": 20, "label": "PER"}]
    assert set(done.changes) == {"texts with encoding damage repaired", "entities with spaces at a boundary trimmed"}


def test_entities_start_with_b(tmp_path: Path) -> None:
    content = "Ada B-PER\nsang O\n\nin O\nBath B-LOC\n\nthen O\nMary I-PER\nHill I-PER\nleft O\n\n"
    write_fixed_copy(write_file(tmp_path / "a.conll", content), tmp_path / "b.conll")
    assert (tmp_path / "b.conll").read_text() == content.replace("Mary I-PER", "Mary B-PER")


def test_start_of_an_answer_that_occurs_once_is_corrected(tmp_path: Path) -> None:
    def question(answer: str, start: int) -> dict[str, Any]:
        return {"question": f"{answer}?", "id": answer, "answers": [{"text": answer, "answer_start": start}]}

    article = {
        "title": "T",
        "paragraphs": [{"context": "a b c, a d", "qas": [question("b", 0), question("a", 1), question("d", 9)]}],
    }
    done = write_fixed_copy(write_file(tmp_path / "a.json", json.dumps({"data": [article]})), tmp_path / "b.jsonl")
    answers = dict(fields(read(tmp_path / "b.jsonl"), "id", "answers"))
    assert answers == {"b": (("b", 2),), "d": (("d", 9),)}
    assert dict(done.changes) == {"starts of answers corrected": 1}
    assert len(done.left_out) == 1


def test_parquet_aligned_files_and_text(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a cafÃ©", "b"], "label": ["x", "y"]}), tmp_path / "a.parquet")
    write_fixed_copy(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "b.parquet").to_pylist()[0] == {"text": "a café", "label": "x"}
    write_file(tmp_path / "a.en", "one\ntwo\ntwo\n")
    write_file(tmp_path / "a.de", "eins\nzwei\nzwei\n")
    write_fixed_copy((tmp_path / "a.en", tmp_path / "a.de"), tmp_path / "b.tsv")
    assert (tmp_path / "b.tsv").read_text() == "en\tde\none\teins\ntwo\tzwei\n"
    write_fixed_copy(
        write_file(tmp_path / "a.txt", "first\u200b line\nsecond line\n\nother document\n"), tmp_path / "b.txt"
    )
    assert (tmp_path / "b.txt").read_text() == "first line\nsecond line\n\nother document\n\n"


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.parquet"])
def test_json_rows_keep_their_columns_in_a_table(tmp_path: Path, name: str) -> None:
    rows: list[dict[str, Any]] = [{"text": "one", "label": "x", "note": None}, {"label": "y", "text": "two"}]
    many = [{"text": f"row {number}", "label": "x", "note": None} for number in range(5000)]
    rows += [*many, {"text": "three", "label": "x", "note": "late"}]
    path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    write_fixed_copy(path, tmp_path / name)
    results = list(read(tmp_path / name))
    assert fields(results, "text", "label") == [(row["text"], row["label"]) for row in rows]
    more = write_file(tmp_path / "c.jsonl", path.read_text() + '{"text": "four", "label": "y", "source": "z"}\n')
    with pytest.raises(InputError, match=r'a row has "source", which the first row does not have.*ends in \.jsonl'):
        write_fixed_copy(more, tmp_path / f"more-{name}")
    assert not (tmp_path / f"more-{name}").exists()


def test_column_of_two_types_is_refused_in_parquet(tmp_path: Path) -> None:
    rows = [{"text": f"row {number}", "label": "x", "size": 1 if number < 5000 else "large"} for number in range(5001)]
    path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"different types.*ends in \.jsonl"):
        write_fixed_copy(path, tmp_path / "b.parquet")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.jsonl"]


def test_conll_as_json_lines(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.conll", "Ada NNP B-PER\nsang VBD O\n\nin IN O\nBath NNP B-LOC\n")
    write_fixed_copy(path, tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[0]) == {
        "tokens": ["Ada", "sang"],
        "tags": ["B-PER", "O"],
    }
    assert len(list(read(tmp_path / "b.jsonl"))) == 2
    with pytest.raises(InputError, match=r"CoNLL cannot be written as .csv. Use a file name that ends in .con"):
        write_fixed_copy(path, tmp_path / "b.csv")
    with pytest.raises(InputError, match=r"cannot be written as an Excel workbook"):
        write_fixed_copy(write_file(tmp_path / "a.csv", "text,label\nx,y\n"), tmp_path / "b.xlsx")


DOCUMENTS = "-DOCSTART- O\n\nAda B-PER\n\nsang O\n\n-DOCSTART- O\n\nin O\n\n"


def test_documents_stay_apart(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.conll", DOCUMENTS)
    for name in ("b.conll", "b.jsonl"):
        write_fixed_copy(path, tmp_path / name)
        assert fields(read(tmp_path / name), "right_context") == [("sang",), (), ()]
    assert (tmp_path / "b.conll").read_text() == DOCUMENTS
    several = [path, write_file(tmp_path / "c.conll", "-DOCSTART- O\n\nBath B-LOC\n")]
    for name in ("d.conll", "d.jsonl"):
        write_fixed_copy(several, tmp_path / name)
        assert fields(read(tmp_path / name), "right_context") == [("sang",), (), (), ()]


def test_format_that_is_not_written_is_an_error(tmp_path: Path) -> None:
    table = write_file(tmp_path / "a.csv", "text,label\nx,y\n")
    with pytest.raises(InputError, match=r"format json cannot be written. Use a file name that ends in \.csv,"):
        write_fixed_copy(table, tmp_path / "b.json")
    rows = write_file(tmp_path / "a.json", '[{"text": "x", "label": "y"}]')
    write_fixed_copy(rows, tmp_path / "c.json")  # as JSON lines
    assert (tmp_path / "c.json").read_text() == '{"text": "x", "label": "y"}\n'


def test_format_of_the_copy_is_checked_before_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_file(tmp_path / "a.csv", "text,label\nx,y\n")
    html = tmp_path / "report.html"
    outputs = ["--fix", str(tmp_path / "b.json"), "--html", str(html)]
    assert cli.main(["check", str(path), *outputs]) == 1
    assert "files of the format json cannot be written" in capsys.readouterr().err
    assert not html.exists()


def test_carriage_return_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'text,label\n"a\rb",x\nc,y\n')
    write_fixed_copy(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_bytes() == b'text,label\n"a\rb",x\nc,y\n'


def test_halves_of_pairs_are_removed_and_whole_pairs_kept(tmp_path: Path) -> None:
    lines = '{"text": "bad \\ud83d end", "label": "a"}\n{"text": "good \\ud83d\\ude00 end \\\\ud83d", "label": "b"}\n'
    done = write_fixed_copy(write_file(tmp_path / "a.jsonl", lines), tmp_path / "b.jsonl")
    texts = [json.loads(line)["text"] for line in (tmp_path / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    assert texts == ["bad  end", "good 😀 end \\ud83d"]
    assert dict(done.changes) == {"NUL characters or halves of surrogate pairs removed": 1}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'text,label,note\n"a lone\rreturn",x,"y\rz"\nb,y,"\r"\n'),
        ("a.csv", 'text,label\n"  spaces , and commas ",x\n"say ""hi""",y\n" ",z\nplain,z\n'),
        ("a.csv", "text;label\n1,5 and 2,5;x\n3,5 and 4,5;y\n"),
        ("a.csv", 'text,label\n"\ufeffmark",x\nother,y\n'),
        ("a.tsv", 'text\tlabel\n"open and never closed\tx\n"whole"\ty\nplain\tz\n'),
        ("a.tsv", 'text\tlabel\n"open\tx\n"open\tx\n"a ""b"" c"\ty\nplain\tz\n'),  # without its second row it is quoted
        ("a.tsv", "text\tlabel\na\u2028b\tx\nlast\ty\r\r\n"),
        ("a.tsv", 'text\tlabel\n"a\ttab"\tx\n"a\nbreak"\ty\n"a\rreturn"\tz\n'),
        ("a.txt", "one\u2028\u2028two\n\u200b\nthree\n\nfour\u2029five\n"),
        ("a.conll", "Ada B-PER\nsang O\n\nNew\u00a0York B-LOC\nis O\n"),
        ("a.conll", "Ada\tB-PER\nsang\tO\n\nNew York\tB-LOC\nis\tO\n"),
        ("a.jsonl", '{"text": "a\\u2028b\\u0085", "label": "x"}\n{"text": "c\\r\\n", "label": "y"}\n'),
        ("a.jsonl", '{"tokens": ["New York", "\\u2028"], "tags": ["B-LOC", "O"]}\n'),
    ],
)
@pytest.mark.parametrize("out", ["b", "b.csv", "b.tsv", "b.jsonl", "b.parquet"])
def test_copy_is_read_back(tmp_path: Path, name: str, content: str, out: str) -> None:
    (tmp_path / name).write_bytes(content.encode())
    target = tmp_path / (out if "." in out else f"b{Path(name).suffix}")
    if name.endswith((".txt", ".conll")) and target.suffix not in (".txt", ".conll"):
        return
    result = read(tmp_path / name).schema
    done = write_fixed_copy(tmp_path / name, target)
    again = list(read(target, columns=result.columns, like=result))
    assert len(again) == done.rows > 0
    assert b"\xe2\x80\xa8" not in target.read_bytes() or name == "a.jsonl"


HOSTILE_TEXT = st.text(st.sampled_from("a b,;\t\r\n\"'|\ufeff\u2028\u200bé#{}[]\\=-"), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(HOSTILE_TEXT, st.sampled_from(["x", "y", '"z"'])), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["b.csv", "b.tsv", "b.jsonl", "b.parquet"]),
)
def test_hostile_tables(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str, out: str
) -> None:
    from regard.data.formats.delimited.quoting import csv_row

    folder = tmp_path_factory.mktemp("fix")
    path = folder / ("a.tsv" if delimiter == "\t" else "a.csv")
    lines = [csv_row(row, delimiter, all_quoted=True) for row in [("text", "label"), *rows]]
    path.write_bytes("".join(lines).encode())
    done = write_fixed_copy(path, folder / out)
    assert done.rows == len({(clean(text).strip(), label) for text, label in rows if clean(text).strip()})


def test_table_that_would_be_read_as_text_is_not_kept(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a", "sep=;\ntext\nhello\nworld\n")
    with pytest.raises(DataError, match=r"it would be read as text, not as csv.*Use a file name that ends in \.csv"):
        write_fixed_copy(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert write_fixed_copy(path, tmp_path / "b.csv").rows == 2
