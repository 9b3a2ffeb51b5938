"""Every format writes rows that are read back as they were."""

from pathlib import Path

import pytest
from tests.data.helpers import text_and_label

from regard.data.formats.registry import formats
from regard.data.readers import read

ROWS = [{"text": 'one "two", three', "label": "a"}, {"text": "line\nbreak", "label": "b"}]


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "parquet"])
def test_rows_are_read_back(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source.csv"
    source.write_text('text,label\n"one ""two"", three",a\n"line\nbreak",b\n')
    path = tmp_path / f"copy.{name}"
    write = formats()[name].write
    assert write is not None
    with write(path, read(source).schema, "default") as write_row:
        for row in ROWS:
            write_row(row)
    assert text_and_label(read(path)) == [(row["text"], row["label"]) for row in ROWS]
