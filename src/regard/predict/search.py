"""The texts that are nearest to a query, by the cosine of their vectors.

A text longer than the model's window is searched in overlapping passages; its score is that of its best passage.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.batching.windows import windows
from regard.data.inputs import check_texts
from regard.data.names import Columns
from regard.data.readers import read
from regard.data.records import DocumentRecord
from regard.data.sources import TABLES, DataLocation, suffix_of
from regard.errors import DataError, InputError, setting
from regard.predict.load import load
from regard.predict.model import BATCH_TOKENS, Model
from regard.predict.vector_cache import PassageVectors, cache_file, model_key, read_cache, texts_key, write_cache
from regard.progress import OnProgress, Progress

if TYPE_CHECKING:
    from regard.text.tokenizer import Tokenizer

TEXTS_AT_ONCE = 2048  # embedded together
WINDOW = 512  # tokens of a passage for models without a limit of their own
OVERLAP = 0.25


@dataclass(frozen=True, slots=True)
class Match:
    """One result. `start` and `end` are the best passage of the text, in code points; the whole text if it is short."""

    score: float  # cosine, -1 to 1
    row: int  # number of the text, from 0
    text: str
    start: int
    end: int
    line: int | None = None  # where the text stands in its file, from 1

    @property
    def passage(self) -> str:
        return self.text[self.start : self.end]

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SearchResult:
    """The best matches of each query, and where the vectors were kept."""

    queries: tuple[str, ...]
    matches: tuple[tuple[Match, ...], ...]  # one row for each query, the best match first
    texts: int
    passages: int
    seconds: float
    cache: Path | None = None  # where the vectors lie now
    cached: bool = False  # whether they were read from there
    notes: tuple[str, ...] = field(default=())  # why there is no cache, or why it was made again


class FileText(NamedTuple):
    """A text and its line."""

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
    pool: str = "auto",
    cache: str | Path | None = None,
    use_cache: bool = True,
    batch_tokens: int = BATCH_TOKENS,
    progress: OnProgress | None = None,
) -> SearchResult:
    """The texts of a file that are nearest to each query.

    data: a file with one text per line (blank lines are skipped), or a table with a text column; `-` is stdin.
    top: results for each query.
    encoding: of the file, such as cp1252; recognized if not given.
    window: most tokens of a passage, as many as the model can read if not given; longer texts are cut into
        overlapping passages.
    cache: the folder for the vectors; that of the file if not given. Stdin, folders and several files are only cached
        where it is given.
    """
    began = time.monotonic()
    queries = _queries(query)
    _check_top(top)
    model = model if isinstance(model, Model) else load(model)
    rows = read_texts(data, columns, encoding)
    texts = [row.text for row in rows]
    settings = {"window": _window(model, window), "pool": pool}
    folder, why = _cache_folder(data, cache) if use_cache else (None, "")
    store = _Store(folder, why, _name(data), model, settings)
    asked = embed_queries(model, queries, pool=pool, batch_tokens=batch_tokens)
    found = store.vectors(texts, asked.shape[1], batch_tokens, progress)
    matches = tuple(
        tuple(_match(found, place, score, texts, rows) for place, score in best) for best in nearest(found, asked, top)
    )
    seconds = round(time.monotonic() - began, 3)
    return SearchResult(
        tuple(queries), matches, len(texts), len(found), seconds, store.path, store.cached, tuple(store.notes)
    )


def search_texts(
    model: Model,
    texts: Iterable[str],
    query: str | Sequence[str],
    *,
    top: int,
    window: int | None,
    pool: str,
    batch_tokens: int,
    progress: OnProgress | None,
) -> list[list[Match]]:
    """The same for texts in hand, without a cache."""
    queries = _queries(query)
    _check_top(top)
    given = check_texts(texts)
    found = passage_vectors(
        model, given, window=_window(model, window), pool=pool, batch_tokens=batch_tokens, progress=progress
    )
    asked = embed_queries(model, queries, pool=pool, batch_tokens=batch_tokens)
    return [[_match(found, place, score, given) for place, score in best] for best in nearest(found, asked, top)]


def read_texts(data: DataLocation, columns: Columns | None = None, encoding: str | None = None) -> list[FileText]:
    """The texts of a file with their lines; blank ones are left out."""
    plain = columns is None and isinstance(data, str | Path) and _is_plain(Path(data))
    reader = read(data, task="text", format="lines" if plain else None, columns=columns or {}, encoding=encoding)
    rows = []
    for record in reader:
        assert isinstance(record, DocumentRecord)
        if record.text.strip():
            rows.append(FileText(record.text, record.place.line or record.place.row))
    if not rows:
        raise DataError("holds no text to search", file=str(data), expected="one text per line, or a text column")
    return rows


def _is_plain(path: Path) -> bool:
    return not path.expanduser().is_dir() and suffix_of(path) not in TABLES


class _Store:
    """The vectors of texts: from the cache where it fits, else computed and kept there."""

    def __init__(self, folder: Path | None, why: str, name: str, model: Model, settings: dict[str, Any]) -> None:
        self.model, self.settings = model, settings
        self.notes = [why] if why else []
        self.cached = False
        self.path: Path | None = None
        self._key = ""
        if folder is not None:
            self._key = model_key(model, {**settings, "overlap": OVERLAP})
            self.path = cache_file(folder, name, self._key)

    def vectors(
        self, texts: Sequence[str], width: int, batch_tokens: int, progress: OnProgress | None
    ) -> PassageVectors:
        key = f"{self._key} {texts_key(texts)}" if self.path is not None else ""
        if self.path is not None and self.path.is_file():
            known = read_cache(self.path, key, texts=len(texts), width=width)
            if known is not None:
                self.cached = True
                return known
            self.notes.append(f"{self.path} does not fit these texts any more; the vectors are computed again.")
        found = passage_vectors(self.model, texts, **self.settings, batch_tokens=batch_tokens, progress=progress)
        if self.path is not None:
            failed = write_cache(self.path, key, found)
            if failed is not None:
                self.notes.append(f"the vectors are not cached: {failed}")
                self.path = None
        return found


def _cache_folder(data: DataLocation, cache: str | Path | None) -> tuple[Path | None, str]:
    """The folder for the cache, or None and why there is none."""
    if cache is not None:
        folder = Path(cache).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder {folder} for the cache cannot be made: {error.strerror}.") from error
        return folder, ""
    if not isinstance(data, str | Path) or not Path(data).expanduser().is_file():
        return None, "the vectors are not cached, since this is not a single file."
    folder = Path(data).expanduser().resolve().parent
    if not os.access(folder, os.W_OK):
        return None, f"the vectors are not cached: the folder {folder} cannot be written."
    return folder, ""


def _name(data: DataLocation) -> str:
    if isinstance(data, str | Path) and str(data) != "-":
        return Path(data).name
    return "texts"


def passage_vectors(
    model: Model,
    texts: Sequence[str],
    *,
    window: int,
    pool: str,
    batch_tokens: int,
    progress: OnProgress | None,
) -> PassageVectors:
    """A unit vector for each text, or for each passage of a long one."""
    tokenizer = model.preprocessing().tokenizer
    parts: list[NDArray[np.float32]] = []
    places: list[tuple[int, int, int]] = []
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts[first : first + TEXTS_AT_ONCE]
        cuts = [(first + row, start, end) for row, start, end in passages(some, tokenizer, window)]
        chunk_progress = None
        if progress is not None:
            chunk_progress = _progress_of_texts(progress, first, len(some), len(cuts), len(texts))
        pieces = [texts[row][start:end] for row, start, end in cuts]
        vectors = model.embed(pieces, pool=pool, normalise=True, batch_tokens=batch_tokens, progress=chunk_progress)
        parts.append(np.asarray(vectors, np.float32))
        places += cuts
    owners, starts, ends = np.array(places, np.int64).reshape(-1, 3).T
    return PassageVectors(np.concatenate(parts), np.ascontiguousarray(owners), starts.copy(), ends.copy())


def _progress_of_texts(progress: OnProgress, first: int, texts: int, passages: int, total: int) -> OnProgress:
    """Progress over the passages of some texts as progress over all texts."""

    def report(part: Progress) -> None:
        progress(Progress("texts", first + part.done * texts // passages, total))

    return report


def passages(texts: Sequence[str], tokenizer: Tokenizer, window: int) -> Iterator[tuple[int, int, int]]:
    """(text, start, end) of each passage. Most texts are one; those of more tokens than fit are cut with overlap."""
    before, after = tokenizer.surrounding_ids
    room = max(window - len(before) - len(after), 1)
    long = [row for row, text in enumerate(texts) if len(text.encode("utf-8", "surrogatepass")) > room]
    encodings = dict(zip(long, tokenizer.encode_batch([texts[row] for row in long], special=False), strict=True))
    for row, text in enumerate(texts):
        encoding = encodings.pop(row, None)
        if encoding is None or len(encoding) <= room:
            yield row, 0, len(text)
            continue
        cuts = windows(len(encoding), size=room, overlap=int(room * OVERLAP))
        spans = [(encoding.offsets[cut.start][0], encoding.offsets[cut.end - 1][1]) for cut in cuts]
        shown = [(start, end) for start, end in spans if text[start:end].strip()]
        for start, end in shown or [(0, len(text))]:
            yield row, start, end


def embed_queries(model: Model, queries: Sequence[str], *, pool: str, batch_tokens: int) -> NDArray[np.float32]:
    return np.asarray(model.embed(queries, pool=pool, normalise=True, batch_tokens=batch_tokens), np.float32)


def nearest(found: PassageVectors, queries: NDArray[np.float32], top: int) -> Iterator[list[tuple[int, float]]]:
    """For each query the best passages (number, cosine), one for each text, the best first; ties in the order given."""
    firsts = np.flatnonzero(np.diff(found.text_indices, prepend=-1))  # the first passage of each text
    for query in queries:  # one by one: the scores of a query do not depend on the others
        scores = found.vectors @ query
        best = np.maximum.reduceat(scores, firsts)
        yield [_passage(scores, firsts, int(text), len(found)) for text in _top(best, top)]


def _top(scores: NDArray[np.float32], top: int) -> NDArray[np.int64]:
    """Places of the highest scores, in order; equal ones by place."""
    if top >= len(scores):
        return np.argsort(-scores, kind="stable")
    least = np.partition(scores, len(scores) - top)[len(scores) - top]
    kept = np.flatnonzero(scores >= least)
    return kept[np.argsort(-scores[kept], kind="stable")][:top]


def _passage(row: NDArray[np.float32], firsts: NDArray[np.int64], text: int, count: int) -> tuple[int, float]:
    start = int(firsts[text])
    end = int(firsts[text + 1]) if text + 1 < len(firsts) else count
    place = start + int(np.argmax(row[start:end]))
    return place, float(row[place])


def _match(
    found: PassageVectors, place: int, score: float, texts: Sequence[str], rows: Sequence[FileText] | None = None
) -> Match:
    row = int(found.text_indices[place])
    line = None if rows is None else rows[row].line
    return Match(score, row, texts[row], int(found.starts[place]), int(found.ends[place]), line)


def _queries(query: str | Sequence[str]) -> list[str]:
    queries = [query] if isinstance(query, str) else list(query)
    if not queries:
        raise InputError("no query was given; give at least one.")
    for text in queries:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a query is {text!r:.80}; expected a text with words in it.")
    return queries


def _check_top(top: int) -> None:
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InputError(f"{setting('top')} is {top!r}, expected a whole number of at least 1.")


def _window(model: Model, window: int | None) -> int:
    """Tokens of a passage, special ones among them."""
    most = model.config.max_tokens
    if window is None:
        return most or WINDOW
    least = 8
    if window < least or (most is not None and window > most):
        limit = "" if most is None else f" and at most {most}, which this model can read"
        raise InputError(f"{setting('window')} is {window}, expected at least {least} tokens{limit}.")
    return window
