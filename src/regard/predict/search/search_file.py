"""Semantic search over the texts of a file, with a cache of their vectors."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.readers import read
from regard.data.records import DocumentRecord
from regard.data.schema.columns import Columns
from regard.data.sources.locate import DataLocation
from regard.errors import DataError, InputError
from regard.predict.batch.rows import is_plain
from regard.predict.load import load
from regard.predict.model import Model
from regard.predict.runner import BATCH_TOKENS
from regard.predict.search.passages import (
    OVERLAP,
    Match,
    PassageVectors,
    check_queries,
    check_top,
    match_at,
    passage_vectors,
    rank_passages,
    window_size,
)
from regard.predict.search.vector_cache import cache_file, model_key, read_cache, texts_key, write_cache
from regard.progress import OnProgress


@dataclass(frozen=True)
class SearchResult:
    """The best matches of each query, and where the vectors are cached."""

    queries: tuple[str, ...]
    matches: tuple[tuple[Match, ...], ...]  # one row per query, the best match first
    texts: int
    passages: int
    seconds: float
    cache: Path | None = None  # the file with the vectors
    cached: bool = False  # whether the vectors were read from it
    notes: tuple[str, ...] = field(default=())  # why there is no cache, or why it was computed again


class FileText(NamedTuple):
    """A text and its line in the file."""

    text: str
    line: int | None


def search(
    model: Model | str | Path,
    data: DataLocation,
    query: str | Sequence[str],
    *,
    top: int = 10,
    columns: Columns | None = None,
    encoding: str | None = None,
    window: int | None = None,
    pooling: str = "auto",
    cache: str | Path | None = None,
    use_cache: bool = True,
    batch_tokens: int = BATCH_TOKENS,
    progress: OnProgress | None = None,
) -> SearchResult:
    """The texts of a file with the highest cosine similarity to each query.

    data: a file with one text per line (blank lines are skipped), or a table with a text column; `-` is stdin.
    top: results per query.
    encoding: the encoding of the file, such as cp1252; detected if not given.
    window: maximum tokens of a passage, the model's maximum if not given; longer texts are split into overlapping
        passages.
    cache: the folder for the vectors, that of the file if not given. For stdin, folders and several files, vectors are
        cached only if it is given.
    """
    started = time.monotonic()
    queries = check_queries(query)
    check_top(top)
    model = model if isinstance(model, Model) else load(model)
    rows = read_texts(data, columns, encoding)
    texts = [row.text for row in rows]
    settings = {"window": window_size(window, model.config.max_tokens), "pooling": pooling}
    folder, reason = _cache_folder(data, cache) if use_cache else (None, "")
    store = _VectorStore(model, settings, folder, _file_name(data), reason)
    embed = functools.partial(model.embed, pooling=pooling, normalize=True, batch_tokens=batch_tokens)
    query_vectors = embed(queries)
    passages = store.vectors(texts, query_vectors.shape[1], batch_tokens, progress)
    lines = [row.line for row in rows]
    matches = tuple(
        tuple(match_at(passages, index, score, texts, lines) for index, score in best)
        for best in rank_passages(passages, query_vectors, top)
    )
    return SearchResult(
        queries=tuple(queries),
        matches=matches,
        texts=len(texts),
        passages=len(passages),
        seconds=round(time.monotonic() - started, 3),
        cache=store.path,
        cached=store.cached,
        notes=tuple(store.notes),
    )


def read_texts(data: DataLocation, columns: Columns | None = None, encoding: str | None = None) -> list[FileText]:
    """The texts of a file with their lines, without blank ones."""
    plain = isinstance(data, str | Path) and is_plain(str(data), columns)
    reader = read(data, task="text", format="lines" if plain else None, columns=columns or {}, encoding=encoding)
    rows = []
    for record in reader:
        assert isinstance(record, DocumentRecord)
        if record.text.strip():
            rows.append(FileText(record.text, record.place.line or record.place.row))
    if not rows:
        raise DataError("holds no text to search", file=str(data), expected="one text per line, or a text column")
    return rows


class _VectorStore:
    """The vectors of texts: read from the cache if it fits, else computed and cached."""

    def __init__(self, model: Model, settings: dict[str, Any], folder: Path | None, name: str, reason: str) -> None:
        self.model = model
        self.settings = settings
        self.notes = [reason] if reason else []
        self.cached = False
        self.path: Path | None = None
        self._key = ""
        if folder is not None:
            self._key = model_key(model.network, model.tokenizer, {**settings, "overlap": OVERLAP})
            self.path = cache_file(folder, name, self._key)

    def vectors(
        self, texts: Sequence[str], width: int, batch_tokens: int, progress: OnProgress | None
    ) -> PassageVectors:
        key = "" if self.path is None else f"{self._key} {texts_key(texts)}"
        if self.path is not None and self.path.is_file():
            stored = read_cache(self.path, key, texts=len(texts), width=width)
            if stored is not None:
                self.cached = True
                return stored
            self.notes.append(f"{self.path} was made from other texts; the vectors are computed again.")
        computed = self._compute(texts, batch_tokens, progress)
        if self.path is not None:
            failure = write_cache(self.path, key, computed)
            if failure is not None:
                self.notes.append(f"the vectors are not cached: {failure}")
                self.path = None
        return computed

    def _compute(self, texts: Sequence[str], batch_tokens: int, progress: OnProgress | None) -> PassageVectors:
        embed = functools.partial(
            self.model.embed, pooling=self.settings["pooling"], normalize=True, batch_tokens=batch_tokens
        )
        tokenizer = self.model.require_tokenizer()
        return passage_vectors(embed, tokenizer, texts, window=self.settings["window"], progress=progress)


def _cache_folder(data: DataLocation, cache: str | Path | None) -> tuple[Path | None, str]:
    """The folder for the cache, or None and the reason."""
    if cache is not None:
        folder = Path(cache).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder {folder} for the cache cannot be created: {error.strerror}.") from error
        return folder, ""
    if not isinstance(data, str | Path) or not Path(data).expanduser().is_file():
        return None, "the vectors are not cached, since this is not a single file."
    folder = Path(data).expanduser().resolve().parent
    if not os.access(folder, os.W_OK):
        return None, f"the vectors are not cached: the folder {folder} cannot be written."
    return folder, ""


def _file_name(data: DataLocation) -> str:
    if isinstance(data, str | Path) and str(data) != "-":
        return Path(data).name
    return "texts"
