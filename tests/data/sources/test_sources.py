"""Compressed files and stdin."""

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
from tests.data.helpers import table, text_and_label, write_file

from regard.data.readers import read
from regard.errors import DataError

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
