"""Vectors in a cache file: read again where they fit, computed again where they do not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.predict.search.texts import TEXTS, caches

import regard
from regard.predict import Model
from regard.predict.search.search_file import search


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
