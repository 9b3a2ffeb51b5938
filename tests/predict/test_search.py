"""Search: cosines of the vectors themselves, passages of long texts, and a cache that is never stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regard
from regard import cli
from regard.errors import DataError, InputError
from regard.predict import Model
from regard.predict.search.passages import Match
from regard.predict.search.search_file import search

TEXTS = ["a lovely film", "a dull film", "the worst of the year", "great and warm", "cold and dull", "a lovely film"]


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return regard.load(trained, device="cpu")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")  # blank lines between
    return path


def single(found: list[Match] | list[list[Match]]) -> list[Match]:
    return [match for match in found if isinstance(match, Match)]


def test_scores_are_cosines_and_the_best_come_first(model: Model) -> None:
    found = single(model.search(TEXTS, "lovely and warm", top=4))
    vectors, query = model.embed(TEXTS), model.embed(["lovely and warm"])[0]
    cosines = [float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for vector in vectors]
    order = sorted(range(len(TEXTS)), key=lambda row: (-round(cosines[row], 6), row))[:4]
    assert [match.row for match in found] == order
    assert [match.score for match in found] == pytest.approx([cosines[row] for row in order], abs=1e-5)
    assert [match.passage for match in found] == [TEXTS[row] for row in order]
    assert len(single(model.search(TEXTS, "film", top=100))) == len(TEXTS)


def test_several_queries_give_a_list_each(model: Model) -> None:
    found = model.search(TEXTS, ["a lovely film", "cold and dull"], top=1)
    assert [[match.text for match in matches] for matches in found if isinstance(matches, list)] == [
        ["a lovely film"],
        ["cold and dull"],
    ]


def test_a_long_text_is_found_by_its_best_passage(model: Model) -> None:
    long = " ".join(["cold and dull"] * 200 + ["great and warm and lovely"] * 12 + ["cold and dull"] * 200)
    match = single(model.search([long, "poor and cold"], "great and warm and lovely", top=1, window=48))[0]
    assert match.row == 0
    assert "great and warm and lovely" in match.passage
    assert len(match.passage) < len(long) / 10
    assert match.passage == long[match.start : match.end]


def test_lines_are_those_of_the_file(model: Model, file: Path) -> None:
    result = search(model, file, "cold and dull", top=1)
    (match,) = result.matches[0]
    assert (match.text, match.row, match.line) == ("cold and dull", 4, 9)
    table = file.with_suffix(".csv")
    table.write_text("id,opinion\n" + "".join(f"{row},{text}\n" for row, text in enumerate(TEXTS)))
    (match,) = search(model, table, "cold and dull", top=1, columns={"text": "opinion"}).matches[0]
    assert (match.text, match.line) == ("cold and dull", 6)


def caches(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.vectors.npz"))


def test_vectors_are_cached_beside_the_file(model: Model, file: Path) -> None:
    first = search(model, file, "a film")
    again = search(model, file, ["a film", "warm"])
    assert (first.cached, again.cached, again.cache) == (False, True, first.cache)
    assert again.matches[0] == first.matches[0]
    assert caches(file.parent) == [first.cache]
    assert sorted(path.name for path in file.parent.iterdir() if "part" in path.name) == []


@pytest.mark.parametrize("damage", ["text", "cut", "flip", "empty", "other", "model"])
def test_a_cache_that_does_not_fit_is_made_again(model: Model, file: Path, damage: str, trained: Path) -> None:
    first = search(model, file, "a film")
    assert first.cache is not None
    raw = first.cache.read_bytes()
    if damage == "text":
        file.write_text("\n".join([*TEXTS[:-1], "really bad work"]))
    elif damage == "cut":
        first.cache.write_bytes(raw[: len(raw) // 2])
    elif damage == "flip":
        place = raw.index(b"vectors.npy") + 400
        first.cache.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
    elif damage == "empty":
        first.cache.write_bytes(b"")
    elif damage == "other":
        np.savez(first.cache, vectors=np.zeros(3))
    else:  # the weights changed, the name of the folder did not
        model = regard.load(trained, device="cpu")
        with np.errstate(all="raise"):
            next(model.network.parameters()).data.mul_(1.01)
    result = search(model, file, "a film")
    assert not result.cached
    fresh = search(model, file, "a film", use_cache=False)
    assert result.matches == fresh.matches
    assert search(model, file, "a film").cached
    if damage == "model":
        assert len(caches(file.parent)) == 2
    else:
        assert "computed again" in result.notes[0]


def test_settings_are_part_of_the_key(model: Model, file: Path) -> None:
    search(model, file, "a film")
    assert not search(model, file, "a film", pooling="max").cached
    assert not search(model, file, "a film", window=16).cached
    assert search(model, file, "a film", pooling="max").cached


def test_another_folder_for_the_cache(model: Model, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "vectors"
    assert search(model, file, "a film", cache=folder).cache == caches(folder)[0]
    assert caches(file.parent) == []
    assert search(model, file, "a film", cache=folder).cached


def test_a_folder_that_cannot_be_written(model: Model, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    result = search(model, file, "a film")
    assert result.cache is None
    assert "not cached: the folder" in result.notes[0]
    assert len(result.matches[0]) == len(TEXTS)


def test_a_disk_that_is_full(model: Model, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = search(model, file, "a film")
    assert "No space left on device" in result.notes[0]
    assert result.cache is None
    assert caches(file.parent) == []


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


def test_command(trained: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["search", str(trained), str(file), "cold and dull", "a lovely film", "--top", "2", "--device", "cpu"]
    assert cli.main(argv) == 0
    said = capsys.readouterr()
    assert "\ncold and dull\n  score  line  text\n 1.0000     9  cold and dull\n" in said.out
    assert "vectors of 6 texts kept in" in said.err
    assert cli.main([*argv, "--json"]) == 0
    said = capsys.readouterr()
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert [line["query"] for line in lines] == ["cold and dull", "a lovely film"]
    assert [match["line"] for match in lines[1]["matches"]] == [1, 11]  # equal texts, in the order of the file
    assert "read from" in said.err
    assert cli.main(["search", str(trained), str(file)]) == 2
    assert cli.main([*argv, "--cache", "x", "--no-cache"]) == 2


MEASURE = """
import sys, time, resource
import regard
from regard.predict.search.search_file import search
model = regard.load(sys.argv[1], device="cpu")
began = time.monotonic()
first = search(model, sys.argv[2], "a lovely film")
middle = time.monotonic()
again = search(model, sys.argv[2], "a lovely film")
assert again.cached and again.matches == first.matches and first.texts == int(sys.argv[3])
print(middle - began, time.monotonic() - middle, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_ten_thousand_rows(trained: Path, tmp_path: Path) -> None:
    """Memory grows by little more than the vectors and the texts; a cached search takes a moment."""

    def measure(count: int) -> tuple[float, float, float]:
        path = tmp_path / f"{count}.txt"
        path.write_text("".join(f"{TEXTS[row % 6]} number {row} and more of it\n" for row in range(count)))
        argv = [sys.executable, "-c", MEASURE, str(trained), str(path), str(count)]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
        return float(said[0]), float(said[1]), int(said[2]) / 1024

    small, large = measure(1000), measure(10_000)
    assert large[2] - small[2] < 60  # MB
    assert large[1] < max(1.0, large[0] / 2)
