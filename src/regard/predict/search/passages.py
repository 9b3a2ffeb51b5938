"""Semantic search over texts in memory: texts ranked by the cosine of their vectors with that of a query.

A text longer than the model's maximum is searched in overlapping passages; its score is that of its best passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.data.batching.windows import windows
from regard.data.inputs import check_texts
from regard.errors import InputError, setting
from regard.progress import OnProgress, Progress
from regard.text.tokenizer import Tokenizer

TEXTS_AT_ONCE = 2048  # texts that are embedded together
ROUNDING = 1e-4  # of a cosine in fp32, at most
DEFAULT_WINDOW = 512  # tokens of a passage, for models without a maximum
MIN_WINDOW = 8  # tokens of a passage
OVERLAP = 0.25  # fraction of a passage that the next one repeats


class EmbedTexts(Protocol):
    """One vector of length 1 per text."""

    def __call__(self, texts: Sequence[str], *, progress: OnProgress | None = None) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class Match:
    """One result. `start` and `end` are the best passage in the text, in code points; all of a short text."""

    score: float  # cosine, -1 to 1
    row: int  # index of the text, from 0
    text: str
    start: int
    end: int
    line: int | None = None  # line of the text in its file, from 1

    @property
    def passage(self) -> str:
        """The best passage of the text."""
        return self.text[self.start : self.end]

    def json(self) -> dict[str, Any]:
        """The fields as a plain dict."""
        return asdict(self)


@dataclass(frozen=True)
class PassageVectors:
    """Unit vectors of passages, the text each belongs to, and its span in that text."""

    vectors: NDArray[np.float32]  # (passages, width)
    text_indices: NDArray[np.int64]  # (passages,), ascending
    starts: NDArray[np.int64]  # (passages,), code points
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.vectors)


def search_texts(
    embed: EmbedTexts,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    query: str | Sequence[str],
    *,
    top: int,
    window: int | None,
    max_tokens: int | None,
    progress: OnProgress | None,
) -> list[list[Match]]:
    """The best matches of each query among texts in memory, without a cache."""
    queries = check_queries(query)
    check_top(top)
    candidates = check_texts(texts)
    size = window_size(window, max_tokens)
    passages = passage_vectors(embed, tokenizer, candidates, window=size, progress=progress)
    ranked = rank_passages(passages, embed(queries), top)
    return [[match_at(passages, index, score, candidates) for index, score in best] for best in ranked]


def passage_vectors(
    embed: EmbedTexts, tokenizer: Tokenizer, texts: Sequence[str], *, window: int, progress: OnProgress | None
) -> PassageVectors:
    """A unit vector for each text, or for each passage of a long text."""
    vectors: list[NDArray[np.float32]] = []
    spans: list[tuple[int, int, int]] = []
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        chunk = texts[first : first + TEXTS_AT_ONCE]
        chunk_spans = [(first + row, start, end) for row, start, end in split_into_passages(chunk, tokenizer, window)]
        chunk_progress = None
        if progress is not None:
            chunk_progress = _progress_of_texts(progress, first, len(chunk), len(texts))
        passages = [texts[row][start:end] for row, start, end in chunk_spans]
        distinct = {passage: index for index, passage in enumerate(dict.fromkeys(passages))}  # equal texts rank equally
        distinct_vectors = np.asarray(embed(list(distinct), progress=chunk_progress), np.float32)
        vectors.append(distinct_vectors[[distinct[passage] for passage in passages]])
        spans += chunk_spans
    text_indices, starts, ends = np.array(spans, np.int64).reshape(-1, 3).T
    return PassageVectors(np.concatenate(vectors), np.ascontiguousarray(text_indices), starts.copy(), ends.copy())


def _progress_of_texts(progress: OnProgress, first: int, texts: int, total: int) -> OnProgress:
    """Progress over the distinct passages of some texts as progress over all texts."""

    def report(part: Progress) -> None:
        progress(Progress("texts", first + part.done * texts // max(part.total or 0, part.done, 1), total))

    return report


def split_into_passages(texts: Sequence[str], tokenizer: Tokenizer, window: int) -> Iterator[tuple[int, int, int]]:
    """(text, start, end) of each passage. Texts with more tokens than fit are split with an overlap."""
    before, after = tokenizer.surrounding_ids
    max_length = max(window - len(before) - len(after), 1)
    long = [row for row, text in enumerate(texts) if len(text.encode("utf-8", "surrogatepass")) > max_length]
    encodings = dict(zip(long, tokenizer.encode_batch([texts[row] for row in long], special=False), strict=True))
    for row, text in enumerate(texts):
        encoding = encodings.pop(row, None)
        if encoding is None or len(encoding) <= max_length:
            yield row, 0, len(text)
            continue
        parts = windows(len(encoding), size=max_length, overlap=int(max_length * OVERLAP))
        spans = [(encoding.offsets[part.start][0], encoding.offsets[part.end - 1][1]) for part in parts]
        with_text = [(start, end) for start, end in spans if text[start:end].strip()]
        for start, end in with_text or [(0, len(text))]:
            yield row, start, end


def rank_passages(
    passages: PassageVectors, queries: NDArray[np.float32], top: int
) -> Iterator[list[tuple[int, float]]]:
    """For each query (index, cosine) of the best passage of the `top` texts, best first; ties in the order of texts.

    The best texts are ranked by cosines in fp64: in fp32, a matrix product may round equal rows differently.
    """
    firsts = np.flatnonzero(np.diff(passages.text_indices, prepend=-1))  # the first passage of each text
    worse = max(len(firsts) - top, 0)  # texts that are not wanted
    for query in queries:
        scores = passages.vectors @ query
        threshold = np.partition(np.maximum.reduceat(scores, firsts), worse)[worse]
        near = np.flatnonzero(scores >= threshold - ROUNDING)
        exact = np.concatenate([_cosines(passages.vectors[part], query) for part in _parts(near)])
        order = np.argsort(-exact, kind="stable")
        _, best_of_texts = np.unique(passages.text_indices[near[order]], return_index=True)
        best = order[np.sort(best_of_texts)[:top]]
        yield list(zip(near[best].tolist(), exact[best].tolist(), strict=True))


def _parts(indices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [indices[start : start + TEXTS_AT_ONCE] for start in range(0, len(indices), TEXTS_AT_ONCE)]


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Added up in the same order for each row, however many there are."""
    cosines: NDArray[np.float64] = (vectors.astype(np.float64) * query).sum(1)
    return cosines


def match_at(
    passages: PassageVectors,
    index: int,
    score: float,
    texts: Sequence[str],
    lines: Sequence[int | None] | None = None,
) -> Match:
    """The match of one passage."""
    row = int(passages.text_indices[index])
    line = None if lines is None else lines[row]
    return Match(score, row, texts[row], int(passages.starts[index]), int(passages.ends[index]), line)


def check_queries(query: str | Sequence[str]) -> list[str]:
    """The queries as a list; raises InputError where there is none or one is empty."""
    queries = [query] if isinstance(query, str) else list(query)
    if not queries:
        raise InputError("no query was given; give at least one.")
    for text in queries:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a query is {text!r:.80}; expected a text with words in it.")
    return queries


def check_top(top: int) -> None:
    """Raise InputError where `top` is not a positive whole number."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InputError(f"{setting('top')} is {top!r}, expected a whole number of at least 1.")


def window_size(window: int | None, max_tokens: int | None) -> int:
    """Tokens of a passage, special tokens included: the model's maximum if no window is given."""
    if window is None:
        return max_tokens or DEFAULT_WINDOW
    if window < MIN_WINDOW or (max_tokens is not None and window > max_tokens):
        limit = "" if max_tokens is None else f" and at most {max_tokens}, the maximum of this model"
        raise InputError(f"{setting('window')} is {window}, expected at least {MIN_WINDOW} tokens{limit}.")
    return window
