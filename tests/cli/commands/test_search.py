"""`regard search`: a table or JSON lines of the most similar texts, and cached vectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.helpers import Capture, run
from tests.predict.test_search import TEXTS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")  # blank lines between
    return path


def test_a_table_per_query(capsys: Capture, trained: Path, file: Path) -> None:
    queries = ("cold and dull", "a lovely film")
    status, out, err = run(capsys, "search", trained, file, *queries, "--top", 2, "--device", "cpu")
    assert status == 0
    assert "\ncold and dull\n  score  line  text\n 1.0000     9  cold and dull\n" in out
    assert "vectors of 6 texts cached in" in err


def test_json_lines_with_cached_vectors(capsys: Capture, trained: Path, file: Path) -> None:
    argv = ("search", trained, file, "cold and dull", "a lovely film", "--top", 2, "--device", "cpu", "--json")
    _, first, _ = run(capsys, *argv)
    status, out, err = run(capsys, *argv)
    assert (status, out) == (0, first)
    assert "vectors of 6 texts read from" in err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["query"] for row in rows] == ["cold and dull", "a lovely film"]
    assert [match["line"] for match in rows[1]["matches"]] == [1, 11]  # equal texts, in the order of the file


def test_no_cache_writes_no_file(capsys: Capture, trained: Path, file: Path) -> None:
    status, out, err = run(capsys, "search", trained, file, "a dull film", "--top", 1, "--device", "cpu", "--no-cache")
    assert (status, err) == (0, "")
    assert out == "  score  line  text\n 1.0000     3  a dull film\n"  # one query has no heading
    assert list(file.parent.iterdir()) == [file]


def test_the_cache_goes_to_the_given_folder(capsys: Capture, trained: Path, file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "vectors"
    status, _, err = run(capsys, "search", trained, file, "a dull film", "--cache", cache, "--device", "cpu")
    assert status == 0
    assert f"cached in {cache}" in err
    assert list(cache.iterdir())
