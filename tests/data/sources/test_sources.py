"""Files, folders with splits, globs, aligned files, compressed files and stdin."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from tests.data.helpers import fields, table, text_and_label, write_file

from regard.data.readers import read, split_names
from regard.data.records import Place
from regard.errors import DataError


def test_folders_globs_and_lists(tmp_path: Path) -> None:
    for name in ("train-v1", "dev", "test"):
        write_file(tmp_path / f"{name}.csv", f"text,label\n{name},a\n")
    write_file(tmp_path / "test.csv", "label,text\na,test\n")  # another order
    write_file(tmp_path / "notes.md", "not data")
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
        write_file(tmp_path / name, gzip.compress(f"{name}\n".encode()))
    assert fields(read(tmp_path), "source", "target") == [("train.de.gz", "train.en.gz")]
    assert fields(read(tmp_path, columns={"source": "en"}), "source") == ["train.en.gz"]


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
    reader = read(write_file(tmp_path / (name + packed), content))
    assert text_and_label(reader) == text_and_label(reader) == rows
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(content)))
    reader = read("-", format="tsv" if "tsv" in name else None)
    assert text_and_label(reader) == rows
    if not name.endswith("parquet"):
        with pytest.raises(DataError, match="stdin: can be read only once"):
            list(reader)
    if packed:
        with pytest.raises(DataError, match="cut short or damaged"):
            list(read(write_file(tmp_path / (name + packed), content[:-9])))
