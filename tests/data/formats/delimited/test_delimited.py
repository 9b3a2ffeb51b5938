"""CSV and TSV come back as they were written, with and without quotes."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import LABEL, LINE, TEXT, same_folder, table, text_and_label, write_file

from regard.data.readers import read

ROWS = st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=6)


@same_folder
@given(ROWS, st.sampled_from([",", ";", "\t"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_quoted_tables_come_back(tmp_path: Path, rows: list[tuple[str, str]], delimiter: str, quoting: int) -> None:
    path = tmp_path / ("data.tsv" if delimiter == "\t" else "data.csv")
    write_file(path, table(rows, ("text", "label"), delimiter=delimiter, quoting=quoting))
    assert text_and_label(read(path)) == rows


@same_folder
@given(st.lists(st.tuples(LINE, LABEL), min_size=1, max_size=6))
def test_tables_without_quoting_come_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = write_file(
        tmp_path / "data.tsv", "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
    )
    assert text_and_label(read(path, quoting=False)) == rows
