"""From sentences to tokens: which token is the first of a word, and the tokens around a sentence in its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from regard.data.batching.assembly import Cuts, SequencePart, Sequences, assemble, cut_rows
from regard.data.batching.examples import Examples
from regard.data.batching.framing import Frame, single_windows
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.windows import Window
from regard.data.corpus.masking import IGNORE
from regard.data.records import TagRecord
from regard.data.records.neighbors import nearest
from regard.text.flat_tokens import FlatTokens, Ints, bounds_of
from regard.text.tokenizer import Tokenizer

TEXT = 2  # the part of a sequence that is its own text, between its contexts
Spans = Sequence[tuple[int, int]]


def word_columns(spans: Spans, offsets: Spans) -> dict[str, Ints]:
    """For each token the word it is the first token of (`word`), and the end of the words that share it (`upto`)."""
    columns = {"word": np.full(len(offsets), IGNORE), "upto": np.full(len(offsets), IGNORE)}
    for word, token in enumerate(first_tokens(spans, offsets)):
        if token is not None:
            if columns["word"][token] < 0:
                columns["word"][token] = word
            columns["upto"][token] = word + 1
    return columns


def first_tokens(spans: Spans, offsets: Spans) -> Iterator[int | None]:
    """The first token of each word, not shared with the word before it if possible; None for a word without a token."""
    last, token = -1, 0
    for start, end in spans:
        while token < len(offsets) and offsets[token][1] <= start:
            token += 1
        own = token + 1 if token == last and token + 1 < len(offsets) and offsets[token + 1][0] < end else token
        if own < len(offsets) and offsets[own][0] < end:
            last = token = own
            yield own
        else:
            yield None


def flat_word_columns(records: Sequence[TagRecord], tokens: FlatTokens) -> dict[str, Ints]:
    """`word_columns` of all records, whose tokens follow each other. Only records that need it are done one by one."""
    columns = {name: np.full(len(tokens.ids), IGNORE) for name in ("word", "upto")}
    counts = np.fromiter((len(record.spans) for record in records), np.int64, len(records))
    flat = chain.from_iterable(chain.from_iterable(record.spans for record in records))
    spans = np.fromiter(flat, np.int64, 2 * int(counts.sum())).reshape(-1, 2)
    sizes = bounds_of([len(record.text) + 1 for record in records])[:-1]  # where each text would start in all of them
    row_of_word, row_of_token = (
        np.repeat(np.arange(len(records)), counts),
        np.repeat(np.arange(len(records)), tokens.lengths),
    )
    starts, ends = (spans + sizes[row_of_word][:, None]).T
    places = tokens.offsets + sizes[row_of_token][:, None]
    if (np.diff(places[:, 1]) < 0).any() or (np.diff(starts) < 0).any():
        aligned, odd = np.zeros(0, np.int64), np.arange(len(records))
    else:
        first = np.searchsorted(places[:, 1], starts, side="right")
        shared = np.flatnonzero(first[1:] == first[:-1])
        odd = np.unique(row_of_word[shared + 1])
        inside = np.minimum(first, max(len(places) - 1, 0))
        aligned = np.flatnonzero((first < len(places)) & (places[inside, 0] < ends)) if len(places) else shared[:0]
        aligned = aligned[~np.isin(row_of_word[aligned], odd)]
        word = np.arange(len(spans)) - bounds_of(counts)[:-1][row_of_word]
        columns["word"][first[aligned]] = word[aligned]
        columns["upto"][first[aligned]] = word[aligned] + 1
    for row in odd.tolist():
        own = slice(*tokens.bounds[row : row + 2].tolist())
        for name, values in word_columns(records[row].spans, tokens.offsets[own].tolist()).items():
            columns[name][own] = values
    return columns


class SentenceTokens(NamedTuple):
    """The tokens of sentences, and those to the left and to the right of each in its document."""

    own: FlatTokens
    left: FlatTokens
    right: FlatTokens


def sentence_tokens(records: Sequence[TagRecord], tokenizer: Tokenizer, *, size: int) -> SentenceTokens:
    """The tokens of each record, and of the texts around it that have at least `size` words on each side.

    Every text is tokenized once, and alone, so that its tokens are the same as context and as a sentence.
    """
    lefts, rights = (_nearest_texts(records, side, size) for side in ("left_context", "right_context"))
    number: dict[str, int] = {}
    for text in chain((record.text for record in records), *lefts, *rights):
        number.setdefault(text, len(number))
    tokens = tokenizer.flat_batch(list(number), offsets=True)
    own = tokens.take(np.fromiter((number[record.text] for record in records), np.int64, len(records)))
    ids_only = tokens._replace(offsets=tokens.offsets[:0])
    sides = []
    for texts in (lefts, rights):
        counts = bounds_of([len(one) for one in texts])
        flat = ids_only.take(np.fromiter((number[text] for text in chain(*texts)), np.int64, int(counts[-1])))
        sides.append(flat._replace(bounds=flat.bounds[counts]))
    return SentenceTokens(own, *sides)


def tagged_examples(
    tokens: SentenceTokens, columns: Mapping[str, Ints], preprocessing: Preprocessing, *, size: int
) -> Examples:
    """Each text with `size` tokens of context on each side. columns: values for each token of the texts."""
    sequences, cuts = surrounded_sequences(Frame.of(preprocessing.tokenizer), tokens, preprocessing, size=size)
    starts = tokens.own.bounds[cuts.row] + cuts.own_start
    owned, skipped = cuts.own_end - cuts.own_start, cuts.own_start - cuts.start
    by_token = {name: sequences.column(TEXT, of, starts, owned, skipped) for name, of in columns.items()}
    return sequences.build(by_sequence={}, by_token=by_token)


def surrounded_sequences(
    frame: Frame, tokens: SentenceTokens, preprocessing: Preprocessing, *, size: int
) -> tuple[Sequences, Cuts]:
    """Each sentence with the end of its left and the start of its right context: `size` tokens, or as many as fit.

    A sentence that is too long for a sequence is split into windows, without context. The tokens that are free in a
    sequence are divided evenly between both sides.
    """
    lengths, limit = tokens.own.lengths, preprocessing.max_tokens
    left, right = np.minimum(tokens.left.lengths, size), np.minimum(tokens.right.lengths, size)
    long = lengths[:0]
    if limit is not None:
        long = np.flatnonzero(lengths + frame.special_count > limit)
        free = np.maximum(limit - frame.special_count - lengths, 0) // 2
        left, right = np.minimum(left, free), np.minimum(right, free)

    def windows_of(row: int) -> Iterator[Window]:
        ids = range(int(lengths[row]))
        cuts = single_windows(frame, ids, max_tokens=limit, overlap=preprocessing.overlap)
        return (cut.parts[0].window for cut in cuts)

    cuts = cut_rows(lengths, long, windows_of)
    before, after = (SequencePart.special(special, len(cuts.row)) for special in frame.alone)
    starts = (tokens.left.bounds[1:] - left)[cuts.row], tokens.right.bounds[:-1][cuts.row]
    parts = (
        before,
        SequencePart(tokens.left.ids, starts[0], left[cuts.row], frame.segment),
        SequencePart.text(tokens.own, cuts, segment=frame.segment),
        SequencePart(tokens.right.ids, starts[1], right[cuts.row], frame.segment),
        after,
    )
    return assemble(cuts.row, parts, segments=preprocessing.segments), cuts


def _nearest_texts(records: Sequence[TagRecord], side: str, size: int) -> list[list[str]]:
    """The texts on one side of each record that have this many words together, in the order of the document."""
    if not size:
        return [[] for _ in records]
    if side == "right_context":
        return [list(nearest(record.right_context, size)) for record in records]
    return [list(nearest(reversed(record.left_context), size))[::-1] for record in records]
