"""From sentences to tokens: which token is the first of a word, and the tokens around a sentence in its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from regard.data.batching.packing import Ints
from regard.data.corpus.masking import IGNORE
from regard.data.records import TagRecord
from regard.data.records.neighbors import nearest
from regard.text.tokenizer import Tokenizer

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


def context_tokens(
    records: Sequence[TagRecord], ids: Sequence[Sequence[int]], tokenizer: Tokenizer, *, size: int
) -> Iterator[tuple[list[int], list[int]]]:
    """At most `size` tokens to the left and to the right of each record, whose own tokens are `ids`.

    Every text is tokenized once, and alone, so that its tokens are the same as context and as a sentence.
    """
    sides = [
        (list(nearest(reversed(record.left_context), size)), list(nearest(record.right_context, size)))
        for record in records
    ]
    known = {record.text: tokens for record, tokens in zip(records, ids, strict=True)}
    others = [text for text in dict.fromkeys(chain.from_iterable(chain(*sides))) if text not in known]
    encodings = tokenizer.encode_batch(others, special=False) if others else []
    known |= {text: encoding.ids for text, encoding in zip(others, encodings, strict=True)}
    for left, right in sides:
        before = [token for text in reversed(left) for token in known[text]]
        after = [token for text in right for token in known[text]]
        yield before[max(len(before) - size, 0) :], after[:size]
