"""A copy is read again before it replaces the target."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.helpers import write_file

from regard.data.check.fixing.fixed_copy import write_fixed_copy
from regard.data.check.rules.mojibake import clean
from regard.data.readers import read
from regard.errors import DataError


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


def test_copy_that_differs_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.data.formats import row_writers as writers

    monkeypatch.setattr(writers, "csv_row", lambda values, delimiter, all_quoted: delimiter.join(values) + "\n")
    old = write_file(tmp_path / "b.csv", "what was there\n")
    path = write_file(tmp_path / "a.csv", 'text,label\nplain,x\n"a, b",y\n')
    with pytest.raises(DataError, match=r"b.csv: would not have the same rows \(it cannot be read: the row has 3"):
        write_fixed_copy(path, old)
    assert old.read_text() == "what was there\n"
    monkeypatch.setattr(writers, "csv_row", lambda values, delimiter, all_quoted: delimiter.join(values).upper() + "\n")
    with pytest.raises(DataError, match=r"row \d would be read differently|cannot be read"):
        write_fixed_copy(write_file(tmp_path / "a.csv", "text,label\nplain,x\nother,y\n"), old)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "b.csv"]


HOSTILE_TEXT = st.text(st.sampled_from("a b,;\t\r\n\"'|\ufeff\u2028\u200bé#{}[]\\=-"), max_size=8)


@settings(max_examples=150, deadline=None)
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
