"""Vectors of a vocabulary in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from regard.baselines import vector_cache
from regard.baselines.vector_cache import MAX_FILES, Floats, cached_vectors

SEQUENCES = [[1, 5, 2], [1, 6, 2]]


class Compute:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Floats:
        self.calls += 1
        return (np.arange(8).reshape(2, 4) / 3).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(vector_cache, "FEW_TOKENS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "regard" / "static"


def test_vectors_are_computed_once(folder: Path) -> None:
    compute = Compute()
    first = cached_vectors(SEQUENCES, 4, key="a", compute=compute)
    assert np.array_equal(cached_vectors(SEQUENCES, 4, key="a", compute=compute), first)
    assert compute.calls == 1
    cached_vectors(SEQUENCES, 4, key="b", compute=compute)  # another network
    cached_vectors([[1, 5], [2, 1, 6, 2]], 4, key="a", compute=compute)  # other sequences of the same tokens
    assert compute.calls == 3
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"no array", None])
def test_a_damaged_file_is_replaced(folder: Path, damage: bytes | None) -> None:
    compute = Compute()
    cached_vectors(SEQUENCES, 4, key="a", compute=compute)
    (path,) = folder.iterdir()
    if damage is None:
        np.save(path, np.full((2, 4), np.nan, np.float32))
    else:
        path.write_bytes(damage)
    cached_vectors(SEQUENCES, 4, key="a", compute=compute)
    cached_vectors(SEQUENCES, 4, key="a", compute=compute)
    assert compute.calls == 2


def test_files_that_were_not_used_for_long_are_removed(folder: Path) -> None:
    compute = Compute()
    for number in range(MAX_FILES):
        cached_vectors(SEQUENCES, 4, key=f"{number}", compute=compute)
        (path,) = folder.glob(f"{number}-*")
        os.utime(path, (number, number))
    cached_vectors(SEQUENCES, 4, key="0", compute=compute)  # used again
    cached_vectors(SEQUENCES, 4, key="new", compute=compute)
    assert sorted(path.name[0] for path in folder.iterdir()) == sorted({*"01234567n"} - {"1"})


@pytest.mark.parametrize(("name", "value"), [("user_cache", lambda *names: None), ("FEW_TOKENS", 9)])
def test_nothing_is_kept_without_a_folder_or_if_it_is_little(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, name, value)
    compute = Compute()
    for _ in range(2):
        cached_vectors(SEQUENCES, 4, key="a", compute=compute)
    assert compute.calls == 2
