"""Documents of a token store as one stream of tokens, and the training sequences read from it: blocks or pairs.

    train, dev = split_corpus(corpus, fraction=0.1, seed=0)
    source = TextSource(train, Frame.of(tokenizer), "mlm", max_tokens=128)
    source.epoch(0).take([0, 1])  # a batch

Nothing is copied: positions of the stream are mapped to those of the store when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from regard.data.batching.batches import shuffled
from regard.data.batching.examples import LEARN, Inputs
from regard.data.batching.framing import Frame
from regard.data.corpus.sentence_pairs import SentencePairs, sample_pairs, token_blocks
from regard.data.corpus.token_store import Corpus
from regard.data.corpus.word_starts import BEGINS, WordStarts
from regard.errors import InputError, pluralize
from regard.ragged import Ragged
from regard.text.flat_tokens import Ints, ranges

Objective = Literal["mlm", "mlm+nsp", "causal", "bidirectional"]
OBJECTIVES = ("mlm", "mlm+nsp", "causal", "bidirectional")
WHOLE = ("mlm", "bidirectional")  # read in blocks of one document, with the special tokens of a text
MAX_DEV_TOKENS = 1 << 18  # approximate maximum of the validation text: enough for scores, and evaluated quickly
SHUFFLE_KEY = 2  # makes this shuffle differ from those of batches


@dataclass(frozen=True, eq=False)
class Stream:
    """Documents, or parts of them, by their positions in the store. Positions of the stream run through all of them."""

    corpus: Corpus
    spans: Ints  # (D, 2) start and end in the store
    documents: Ints  # (D,) their numbers in the store

    @classmethod
    def of(cls, corpus: Corpus, documents: Ints) -> Stream:
        return cls(corpus, np.stack((corpus.bounds[documents], corpus.bounds[documents + 1]), 1), documents)

    @cached_property
    def bounds(self) -> Ints:
        """Where each document begins in the stream, and the end of the last."""
        return _summed(self.spans[:, 1] - self.spans[:, 0])

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def size(self) -> int:
        """The number of tokens."""
        return int(self.bounds[-1])

    @cached_property
    def sentences(self) -> tuple[Ints, Ints]:
        """The bounds of sentences in tokens of the stream, and of documents in sentences."""
        counts = np.diff(self.corpus.document_sentences)[self.documents]
        first = self.corpus.document_sentences[self.documents]
        lengths = np.diff(self.corpus.sentence_bounds)[ranges(first, counts)]
        return _summed(lengths), _summed(counts)

    def read(self, positions: Ints) -> Ints:
        """The tokens at these positions of the stream."""
        owners = np.searchsorted(self.bounds, positions, side="right") - 1
        values: Ints = self.corpus.tokens[positions + (self.spans[owners, 0] - self.bounds[owners])].astype(np.int64)
        return values

    def counts(self, size: int) -> Ints:
        """How often each token occurs."""
        values = np.zeros(size, np.int64)
        for start, end in self.spans:
            for at in range(start, end, 1 << 22):
                part = np.asarray(self.corpus.tokens[at : min(at + (1 << 22), end)], np.int64)
                values += np.bincount(part, minlength=size)[:size]
        return values


def split_corpus(
    corpus: Corpus, *, fraction: float, seed: int = 0, min_documents: int = 1, max_tokens: int = MAX_DEV_TOKENS
) -> tuple[Stream, Stream | None]:
    """Split into training and validation documents; validation gets about the fraction `fraction` of all tokens.

    Both parts have at least `min_documents` documents. A single document is split: its end is for validation.
    """
    count, total = len(corpus), int(corpus.bounds[-1])
    if fraction <= 0:
        return Stream.of(corpus, np.arange(count)), None
    dev_tokens = min(fraction * total, max_tokens)
    if count == 1 and min_documents == 1:
        cut = total - max(1, round(dev_tokens))
        if cut < 1:
            raise InputError(
                "the text is a single token and cannot be split into training and validation. Set dev_fraction=0."
            )
        return tuple(Stream(corpus, np.array([part]), np.array([0])) for part in ((0, cut), (cut, total)))  # type: ignore[return-value]  # two of them
    if count < 2 * min_documents:
        raise InputError(
            f"the text has {pluralize(count, 'document')}, too few to use {min_documents} for validation and "
            f"{min_documents} for training. Documents are separated by a blank line; set dev_fraction=0 to train "
            "without validation."
        )
    order = shuffled(count, seed, SHUFFLE_KEY)
    sizes = np.cumsum(np.diff(corpus.bounds)[order])
    dev_documents = int(np.clip(np.searchsorted(sizes, dev_tokens) + 1, min_documents, count - min_documents))
    return Stream.of(corpus, np.sort(order[dev_documents:])), Stream.of(corpus, np.sort(order[:dev_documents]))


@dataclass(frozen=True, eq=False)
class TokenBlocks:
    """Spans of a stream, each with the special tokens of a text before and after it."""

    stream: Stream
    spans: Ints  # (K, 2)
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    starts: WordStarts | None = None  # adds word starts to the batches, for whole-word masking

    @property
    def lengths(self) -> npt.NDArray[Any]:
        return self.spans[:, 1] - self.spans[:, 0] + (len(self.before) + len(self.after))

    def take(self, rows: Ints | Sequence[int]) -> Inputs:
        spans = self.spans[np.asarray(rows, np.int64)]
        return _batch(self.stream, [self.before, spans, self.after], starts=self.starts)


@dataclass(frozen=True, eq=False)
class PairRows:
    """Pairs of text parts, with whether the second follows the first."""

    stream: Stream
    pairs: SentencePairs
    frame: Frame
    starts: WordStarts | None = None

    @property
    def lengths(self) -> npt.NDArray[Any]:
        return self.pairs.lengths + (self.frame.pair_special_count - 3)

    def take(self, rows: Ints | Sequence[int]) -> Inputs:
        rows, frame = np.asarray(rows, np.int64), self.frame
        first, second = frame.segments
        parts: list[Any] = [frame.before.ids, self.pairs.first[rows], frame.between.ids, self.pairs.second[rows]]
        part_segments = [frame.before.segments, first, frame.between.segments, second, frame.after.segments]
        labels = {"next": self.pairs.labels[rows]}
        return _batch(self.stream, [*parts, frame.after.ids], part_segments, labels, starts=self.starts)


class TextSource:
    """The training sequences of a stream by epoch: a pure function of the seed and the number of the epoch."""

    def __init__(
        self,
        stream: Stream,
        frame: Frame,
        objective: Objective,
        *,
        max_tokens: int,
        seed: int = 0,
        starts: WordStarts | None = None,
    ) -> None:
        self.stream, self.frame, self.objective = stream, frame, objective
        self.max_tokens, self.seed, self.starts = max_tokens, seed, starts
        self._cached: tuple[int, TokenBlocks | PairRows] | None = None

    def epoch(self, number: int) -> TokenBlocks | PairRows:
        number = 0 if self.objective in WHOLE else number  # the same blocks in every epoch: the masks differ
        if self._cached is None or self._cached[0] != number:
            self._cached = number, self._rows(number)
        return self._cached[1]

    def _rows(self, number: int) -> TokenBlocks | PairRows:
        stream, frame = self.stream, self.frame
        if self.objective == "causal":
            return TokenBlocks(
                stream, token_blocks(stream.bounds, self.max_tokens, across=True, seed=self.seed, epoch=number)
            )
        if self.objective in WHOLE:
            before, after = (marks.ids for marks in frame.alone)
            capacity = self.max_tokens - frame.special_count
            return TokenBlocks(
                stream, token_blocks(stream.bounds, max(capacity, 1), across=False), before, after, self.starts
            )
        capacity = self.max_tokens - frame.pair_special_count + 3  # sample_pairs counts three special tokens
        sentences, documents = stream.sentences
        sampled = sample_pairs(sentences, documents, max_tokens=capacity, seed=self.seed, epoch=number)
        return PairRows(stream, sampled, frame, self.starts)


def _batch(
    stream: Stream,
    parts: Sequence[Any],
    segments: Sequence[Any] | None = None,
    by_sequence: dict[str, Ints] | None = None,
    *,
    starts: WordStarts | None = None,
) -> Inputs:
    """A batch from parts: special tokens (the same in every row) or spans of the stream (one start and end per row)."""
    count = len(next(part for part in parts if isinstance(part, np.ndarray)))
    sizes = [part[:, 1] - part[:, 0] if isinstance(part, np.ndarray) else len(part) for part in parts]
    widths = np.stack([np.broadcast_to(size, count) for size in sizes], 1)  # (K, parts)
    lengths = widths.sum(1)
    edges = (np.cumsum(widths, axis=None) - widths.ravel()).reshape(widths.shape)
    ids = np.empty(int(lengths.sum()), np.int64)
    part_segments = None if segments is None else np.empty_like(ids)
    for number, part in enumerate(parts):
        where = ranges(edges[:, number], widths[:, number])
        if isinstance(part, np.ndarray):
            ids[where] = stream.read(ranges(part[:, 0], widths[:, number]))
        else:
            ids[where] = np.tile(np.asarray(part, np.int64), count)
        if part_segments is not None and segments is not None:
            kind = segments[number]
            part_segments[where] = np.tile(np.asarray(kind, np.int64), count) if isinstance(kind, tuple) else kind
    flat = None if part_segments is None else torch.from_numpy(part_segments)
    by_token = {LEARN: torch.zeros(len(ids), dtype=torch.int8)}
    if starts is not None:
        by_token[BEGINS] = torch.from_numpy(starts(ids))
    return Inputs(
        tokens=Ragged.from_flat(torch.from_numpy(ids), lengths.tolist(), segments=flat),
        by_sequence={name: torch.from_numpy(tensor) for name, tensor in (by_sequence or {}).items()},
        by_token=by_token,
        rows=count,
    )


def _summed(lengths: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
