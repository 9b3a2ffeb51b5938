"""Passages are ranked by cosine, in memory and in a file with its cached vectors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.errors import DataError, InputError
from regard.predict import Model
from regard.predict.search.passages import Match, PassageVectors, rank_passages
from regard.predict.search.search_file import search

# Texts to search, and the matches of one query.


TEXTS = ["a lovely film", "a dull film", "the worst of the year", "great and warm", "cold and dull", "a lovely film"]


def single(results: list[Match] | list[list[Match]]) -> list[Match]:
    return [match for match in results if isinstance(match, Match)]


def caches(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.vectors.npz"))


# A model and a file of texts to search.


@pytest.fixture(scope="module")
def model(trained: Path) -> Model:
    return regard.load(trained, device="cpu")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS) + "\n")  # blank lines between
    return path


# Passages are ranked by the cosine similarity of their vectors.


def test_scores_are_cosines_and_the_best_come_first(model: Model) -> None:
    result = single(model.search(TEXTS, "lovely and warm", top=4))
    vectors, query = model.embed(TEXTS), model.embed(["lovely and warm"])[0]
    cosines = [float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for vector in vectors]
    order = sorted(range(len(TEXTS)), key=lambda row: (-round(cosines[row], 6), row))[:4]
    assert [match.row for match in result] == order
    assert [match.score for match in result] == pytest.approx([cosines[row] for row in order], abs=1e-5)
    assert [match.passage for match in result] == [TEXTS[row] for row in order]
    assert len(single(model.search(TEXTS, "film", top=100))) == len(TEXTS)


def test_several_queries_give_a_list_each(model: Model) -> None:
    result = model.search(TEXTS, ["a lovely film", "cold and dull"], top=1)
    assert [[match.text for match in matches] for matches in result if isinstance(matches, list)] == [
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


def test_equal_texts_have_equal_scores_and_the_order_of_the_file(model: Model) -> None:
    for copies in range(2, 24):  # a matrix product may compute its last rows differently
        matches = single(model.search(["lovely and warm"] * copies, "a warm film", top=copies))
        assert [match.row for match in matches] == list(range(copies))
        assert len({match.score for match in matches}) == 1


@pytest.mark.parametrize("copies", range(2, 24))
def test_equal_vectors_have_equal_scores(copies: int) -> None:
    draw = np.random.default_rng(copies)
    vector, query = draw.normal(size=(2, 384)).astype(np.float32)
    numbers = np.arange(copies)
    passages = PassageVectors(np.tile(vector, (copies, 1)), numbers, numbers * 0, numbers * 0 + 1)
    for top in (copies, 1):
        (ranked,) = rank_passages(passages, query[None], top)
        assert [index for index, _ in ranked] == list(range(top))
        (score,) = {score for _, score in ranked}
        assert score == pytest.approx(float(vector.astype(np.float64) @ query), abs=1e-4)


# Search in a file.


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


# Vectors in a cache file: read again where they fit, computed again where they do not.


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
    uncached = search(model, file, "a film", use_cache=False)
    assert result.matches == uncached.matches
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
