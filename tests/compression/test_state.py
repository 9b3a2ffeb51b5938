"""The work folder: what belongs to the same compression, and results that are read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.compression.result import CandidateResult
from regard.compression.state import WorkFolder
from regard.errors import FolderError
from regard.metrics.paired.rows import RowScore, RowTable

TABLE = RowTable(np.arange(6.0).reshape(3, 2), {"accuracy": RowScore((0, 1))})


def test_results_and_rows_are_read_back(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    assert work.path.name == "small.compress"
    work.open({"data": "x"}, overwrite=False)
    assert work.read("int8", TABLE) is None
    result = CandidateResult("int8", "int8 products")
    work.write("int8", result, TABLE, TABLE)
    stored = work.read("int8", TABLE)
    assert stored is not None
    assert stored[0] == result
    assert stored[1] is not None
    assert np.array_equal(stored[1].features, TABLE.features)
    assert work.read("int8", None) == (result, None, None)


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    work.write("int8", CandidateResult("int8", "int8 products"), None, None)
    file = work.folder("int8") / "result.json"
    file.write_text(file.read_text().replace("int8 products", "changed"))
    assert work.read("int8", None) is None


def test_only_the_same_compression_goes_on(tmp_path: Path) -> None:
    work = WorkFolder.of(tmp_path / "small")
    work.open({"data": "x", "floor": 0.9}, overwrite=False)
    work.open({"data": "x", "floor": 0.9}, overwrite=False)
    with pytest.raises(FolderError, match="differs in: floor"):
        work.open({"data": "x", "floor": 0.8}, overwrite=False)
    work.open({"data": "x", "floor": 0.8}, overwrite=True)
    work.remove()
    work.path.mkdir()
    (work.path / "mine.txt").write_text("")
    with pytest.raises(FolderError, match="holds no compression"):
        work.open({"data": "x"}, overwrite=False)
