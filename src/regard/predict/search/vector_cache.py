"""A file with the vectors of texts, so that the next search over the same texts need not compute them.

It has the vectors and a key: a digest of the texts, of the model's weights and tokenizer, and of the settings. With
another key the vectors are computed again and the file is replaced. Files are written completely or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.checkpoint.network_tensors import network_key
from regard.data.atomic import atomic_path
from regard.errors import RegardError
from regard.model.network import Network
from regard.predict.search.passages import PassageVectors
from regard.text.tokenizer import Tokenizer

VERSION = 2  # of the layout of the file
SUFFIX = ".vectors.npz"


def model_key(network: Network, tokenizer: Tokenizer | None, settings: Mapping[str, Any]) -> str:
    """A digest of the weights, the tokenizer and the settings; it does not depend on the model's folder."""
    tokens = [] if tokenizer is None else [tokenizer.backend.to_str()]
    return network_key(network, *tokens, json.dumps(dict(settings), sort_keys=True))


def texts_key(texts: Iterable[str]) -> str:
    """A digest of the texts in their order."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def cache_file(folder: Path, name: str, model: str) -> Path:
    """The hidden file beside the data that caches its vectors for one model."""
    return folder / f".{name[:100]}.{model[:12]}{SUFFIX}"


def read_cache(path: Path, key: str, *, texts: int, width: int) -> PassageVectors | None:
    """The cached vectors; None where there are none, or they are outdated or damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            if str(file["key"]) != f"{VERSION} {key}":
                return None
            stored = PassageVectors(*(file[name] for name in ("vectors", "text_indices", "starts", "ends")))
    except Exception:  # any error of a damaged file: it is not used
        return None
    return stored if _is_valid(stored, texts, width) else None


def _is_valid(stored: PassageVectors, texts: int, width: int) -> bool:
    """Whether the arrays have the expected shapes, all texts in order, and only finite numbers."""
    rows = len(stored.vectors)
    text_indices = stored.text_indices
    if stored.vectors.shape != (rows, width) or stored.vectors.dtype != np.float32:
        return False
    if any(part.shape != (rows,) or part.dtype != np.int64 for part in (text_indices, stored.starts, stored.ends)):
        return False
    complete = rows >= texts and np.array_equal(np.unique(text_indices), np.arange(texts))
    return bool(complete and (np.diff(text_indices) >= 0).all() and np.isfinite(stored.vectors).all())


def write_cache(path: Path, key: str, vectors: PassageVectors) -> str | None:
    """Write the vectors; returns the reason if that failed."""
    try:
        with atomic_path(path) as temporary, temporary.open("wb") as file:
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
