"""Vectors that take a minute to compute, kept in the user's cache folder: those of the entries of a vocabulary."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.data.atomic import atomic_path
from regard.errors import RegardError
from regard.user_cache import user_cache

VERSION = 1  # of what is computed and of the layout of the file
MAX_FILES = 8  # files; those that were not used for the longest time are removed
FEW_TOKENS = 20_000  # take seconds, so they are not kept
SUFFIX = ".npy"

Floats = npt.NDArray[np.float32]


def cached_vectors(
    sequences: Sequence[Sequence[int]], width: int, *, key: str, compute: Callable[[], Floats]
) -> Floats:
    """The vector of each sequence: read from the cache, or computed and kept there.

    All sequences of a call are one entry of the cache, so that the vectors are the same to the bit with and without it.

    key: a digest of the network that computes them.
    """
    folder = user_cache("static") if sum(map(len, sequences)) > FEW_TOKENS else None
    if folder is None:
        return compute()
    path = folder / f"{key[:24]}-{_digest(sequences)[:24]}{SUFFIX}"
    stored = _read(path, (len(sequences), width))
    if stored is not None:
        return stored
    computed = compute()
    with contextlib.suppress(RegardError, OSError):  # a full disk, or another process that writes the same
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, computed, allow_pickle=False)
        _remove_old(folder)
    return computed


def _digest(sequences: Sequence[Sequence[int]]) -> str:
    digest = hashlib.blake2b(f"{VERSION}".encode(), digest_size=16)
    digest.update(np.fromiter((len(sequence) for sequence in sequences), np.int64).tobytes())
    digest.update(np.fromiter((token for sequence in sequences for token in sequence), np.int64).tobytes())
    return digest.hexdigest()


def _read(path: Path, shape: tuple[int, int]) -> Floats | None:
    """The vectors in a file; None where there are none, or they are damaged."""
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
        os.utime(path)
    except Exception:  # any error of a damaged file: it is not used
        return None
    fits = stored.shape == shape and stored.dtype == np.float32 and np.isfinite(stored).all()
    return stored if fits else None


def _remove_old(folder: Path) -> None:
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[MAX_FILES:]:
        path.unlink(missing_ok=True)
