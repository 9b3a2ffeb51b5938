"""Search in a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.predict.search.texts import TEXTS

from regard.errors import DataError, InputError
from regard.predict import Model
from regard.predict.search.search_file import search

MEASURE = """
import resource, sys
import regard
from regard.predict.search.search_file import search

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

model = regard.load(sys.argv[1], device="cpu")
search(model, sys.argv[2], "a lovely film")
before = peak()
first = search(model, sys.argv[3], "a lovely film")
again = search(model, sys.argv[3], "a lovely film")
assert again.cached and again.matches == first.matches and first.texts == 3000
print(peak() - before)
"""


def test_lines_are_those_of_the_file(model: Model, file: Path) -> None:
    result = search(model, file, "cold and dull", top=1)
    (match,) = result.matches[0]
    assert (match.text, match.row, match.line) == ("cold and dull", 4, 9)
    table = file.with_suffix(".csv")
    table.write_text("id,opinion\n" + "".join(f"{row},{text}\n" for row, text in enumerate(TEXTS)))
    (match,) = search(model, table, "cold and dull", top=1, columns={"text": "opinion"}).matches[0]
    assert (match.text, match.line) == ("cold and dull", 6)


def test_wrong_use(model: Model, file: Path) -> None:
    with pytest.raises(InputError, match="top is 0"):
        search(model, file, "a film", top=0)
    with pytest.raises(InputError, match="expected a text with words"):
        search(model, file, " ")
    with pytest.raises(InputError, match="window is 3, expected at least 8 tokens"):
        search(model, file, "a film", window=3)
    file.write_text("\n\n")
    with pytest.raises(DataError, match=r"texts\.txt.*"):
        search(model, file, "a film")


@pytest.mark.slow
def test_memory_grows_by_little_more_than_vectors_and_texts(trained: Path, tmp_path: Path) -> None:
    files = [tmp_path / "small.txt", tmp_path / "large.txt"]
    for path, count in zip(files, (500, 3000), strict=True):
        path.write_text("".join(f"{TEXTS[row % 6]} number {row} and more of it\n" for row in range(count)))
    argv = [sys.executable, "-c", MEASURE, str(trained), *map(str, files)]
    megabytes = int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    assert megabytes < 30
