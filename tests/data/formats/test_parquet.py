"""Parquet files come back as they were written."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st
from tests.data.helpers import LABEL, TEXT, same_folder, text_and_label

from regard.data.readers import read
from regard.errors import DataError

ROWS = st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=6)


@same_folder
@given(ROWS)
def test_parquet_comes_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    assert text_and_label(read(tmp_path / "data.parquet")) == rows


def raised(use: Callable[[], object]) -> Exception | None:
    try:
        use()
    except Exception as error:
        return error
    return None


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"] * 50, "label": ["x", "y"] * 50}), path)
    content = path.read_bytes()
    draw = random.Random(0)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(4, len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])])
        error = raised(lambda: list(read(path)))
        assert error is None or (isinstance(error, DataError) and "a.parquet" in str(error))
