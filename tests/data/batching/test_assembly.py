"""Sequences made of parts of one pool are those that are joined one by one."""

import numpy as np
import pytest

from regard.data.batching.assembly import SequencePart, assemble, cut_rows
from regard.data.batching.framing import SpecialTokens
from regard.data.batching.windows import windows
from regard.data.corpus.masking import IGNORE
from regard.text.flat_tokens import FlatTokens, bounds_of

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
