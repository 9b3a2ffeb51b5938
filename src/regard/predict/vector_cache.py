"""Vectors of texts in a file, so that the next search over the same texts does not compute them again.

A cache holds the vectors and a key: a digest of the texts, of the model's weights and tokenizer, and of the settings.
A cache with another key is stale; it is computed again and replaced. Files are written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.atomic import atomic_path
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.predict.model import Model

VERSION = 2  # of the layout of the file
SUFFIX = ".vectors.npz"


@dataclass(frozen=True)
class PassageVectors:
    """Unit vectors of passages: which text each belongs to, and where it stands in that text."""

    vectors: NDArray[np.float32]  # (passages, width)
    text_indices: NDArray[np.int64]  # (passages,), ascending: the number of the text
    starts: NDArray[np.int64]  # (passages,), code points
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.vectors)


def model_key(model: Model, settings: Mapping[str, Any]) -> str:
    """The same for the same weights, tokenizer and settings, wherever the model lies."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.network.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {flat.dtype} {tuple(tensor.shape)}".encode())
        digest.update(memoryview(flat.view(dtype=_bytes()).numpy()))
    digest.update(repr(model.config).encode())
    if model.tokenizer is not None:
        digest.update(model.tokenizer.backend.to_str().encode())
    digest.update(json.dumps(dict(settings), sort_keys=True).encode())
    return digest.hexdigest()


def _bytes() -> Any:
    import torch

    return torch.uint8


def texts_key(texts: Iterable[str]) -> str:
    """The same for the same texts in the same order."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def cache_file(folder: Path, name: str, model: str) -> Path:
    """Where the vectors of a file lie for one model: hidden, so that a folder of data stays one of data."""
    return folder / f".{name[:100]}.{model[:12]}{SUFFIX}"


def read_cache(path: Path, key: str, *, texts: int, width: int) -> PassageVectors | None:
    """The vectors of a cache; None where there is none, or it is stale or damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            if str(file["key"]) != f"{VERSION} {key}":
                return None
            found = PassageVectors(*(file[name] for name in ("vectors", "text_indices", "starts", "ends")))
    except Exception:  # whatever a damaged file makes the reader raise: it is not used
        return None
    return found if _fits(found, texts, width) else None


def _fits(found: PassageVectors, texts: int, width: int) -> bool:
    """Whether the arrays are what was written: every text in order, every number finite."""
    rows = len(found.vectors)
    owners = found.text_indices
    if found.vectors.shape != (rows, width) or found.vectors.dtype != np.float32:
        return False
    if any(part.shape != (rows,) or part.dtype != np.int64 for part in (owners, found.starts, found.ends)):
        return False
    every = rows >= texts and np.array_equal(np.unique(owners), np.arange(texts))
    return bool(every and (np.diff(owners) >= 0).all() and np.isfinite(found.vectors).all())


def write_cache(path: Path, key: str, vectors: PassageVectors) -> str | None:
    """Keep the vectors; where that cannot be done, the reason."""
    try:
        with atomic_path(path) as fresh, fresh.open("wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                key=np.array(f"{VERSION} {key}"),
                vectors=vectors.vectors,
                text_indices=vectors.text_indices,
                starts=vectors.starts,
                ends=vectors.ends,
            )
    except (RegardError, OSError) as error:
        return str(error)
    return None
