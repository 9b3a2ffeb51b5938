"""Sequences of token ids, and what joins them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.checkpoint.source import from_preset
from regard.data.batching.assembly import SequencePart, assemble, cut_rows
from regard.data.batching.framing import SpecialTokens
from regard.data.batching.preprocessing import Preprocessing
from regard.data.batching.sequences import split_into_windows, token_batches
from regard.data.batching.windows import windows
from regard.data.corpus.masking import IGNORE
from regard.text.encoding import Encoding
from regard.text.flat_tokens import FlatTokens, bounds_of
from regard.text.learn import train_tokenizer_from_texts


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 60))
def test_every_row_is_in_one_batch_within_the_limit(lengths: list[int], tokens: int) -> None:
    results = list(token_batches(lengths, tokens))
    assert sorted(row for rows in results for row in rows) == list(range(len(lengths)))
    for rows in results:
        assert len(rows) == 1 or sum(lengths[row] for row in rows) <= tokens
    order = [row for rows in results for row in rows]
    assert order == sorted(order, key=lambda row: (-lengths[row], row))


@given(st.integers(1, 200), st.integers(0, 2), st.integers(0, 2), st.integers(5, 40))
def test_every_token_is_kept_once_and_every_window_fits(length: int, before: int, after: int, longest: int) -> None:
    special = (True,) * before + (False,) * length + (True,) * after
    ids, nothing = tuple(range(len(special))), (0,) * len(special)
    encoding = Encoding(ids, nothing, ((0, 0),) * len(ids), nothing, special, nothing)
    pieces = list(split_into_windows(3, encoding, longest))
    assert [token for piece in pieces for token in piece.ids[piece.keep]] == list(ids)
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    for piece in pieces:
        assert (piece.text, len(piece.segments)) == (3, len(piece.ids))
        assert len(piece.ids) == min(longest, len(ids))
        assert tuple(piece.ids[:before]) == ids[:before]
        assert tuple(piece.ids[len(piece.ids) - after :]) == ids[len(ids) - after :]


TEXTS: tuple[list[int], ...] = ([5, 6, 7, 8, 9], [], [1], [2, 3, 4])


@pytest.fixture
def tokens():
    ids = np.array([token for text in TEXTS for token in text], np.int32)
    return FlatTokens(ids, bounds_of([len(text) for text in TEXTS]), np.zeros((0, 2), np.int32))


def test_windows_of_long_rows_are_in_order(tokens):
    cuts = cut_rows(tokens.lengths, np.array([0]), lambda row: windows(5, size=3, overlap=1))
    assert cuts.row.tolist() == [0, 0, 1, 2, 3]
    assert list(zip(cuts.start.tolist(), cuts.end.tolist(), strict=True)) == [(0, 3), (2, 5), (0, 0), (0, 1), (0, 3)]
    assert (cuts.own_end - cuts.own_start).sum() == 9


def test_sequences_of_parts(tokens):
    cuts = cut_rows(tokens.lengths, np.array([], np.int64), lambda row: [])
    before, after = (SequencePart.special(SpecialTokens((mark,), (0,)), 4) for mark in (101, 102))
    reverse = np.array([3, 2, 1, 0])
    swapped = cuts._replace(end=tokens.lengths[reverse])
    parts = (
        before,
        SequencePart.text(tokens, cuts),
        after,
        SequencePart.text(tokens, swapped, segment=1, texts=reverse),
    )
    sequences = assemble(cuts.row, parts, segments=True)
    examples = sequences.examples
    expected = [[101, *text, 102, *other] for text, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    assert [
        examples.ids[a:b].tolist() for a, b in zip(examples.bounds[:-1], examples.bounds[1:], strict=True)
    ] == expected
    assert examples.segments is not None
    assert examples.segments.tolist() == [
        kind
        for text, other in zip(TEXTS, reversed(TEXTS), strict=True)
        for kind in [0] * (len(text) + 2) + [1] * len(other)
    ]
    values = np.arange(len(tokens.ids))
    column = sequences.column(1, values, tokens.bounds[:-1] + 1, np.array([2, 0, 0, 1]), np.array([1, 0, 0, 1]))
    assert column[:9].tolist() == [IGNORE, IGNORE, 1, 2, IGNORE, IGNORE, IGNORE, IGNORE, IGNORE]
    assert (column != IGNORE).sum() == 3
    assert sequences.build(by_sequence={}, by_token={"x": column}).by_token["x"] is column


@pytest.mark.parametrize(
    ("preset", "window", "expected"),
    [
        ("tiny-bert", None, 512),
        ("tiny-bert", 16, 16),
        ("tiny-bert", 1000, 512),
        ("tiny-gru", 16, 16),
        ("tiny-gru", None, None),
    ],
)
def test_the_smaller_limit_counts(preset, window, expected):
    tokenizer = train_tokenizer_from_texts(["a b c"], kind="char", size=20)
    config = from_preset(preset, weights=False).config
    assert (config.max_tokens is None) == (preset == "tiny-gru")
    assert Preprocessing(tokenizer, config, window=window).max_tokens == expected


def test_segments_of_bert():
    tokenizer = train_tokenizer_from_texts(["a b c"], kind="char", size=20)
    assert Preprocessing(tokenizer, from_preset("tiny-bert", weights=False).config).segments
