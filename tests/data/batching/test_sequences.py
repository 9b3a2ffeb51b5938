"""Batches hold every row once and no more tokens than asked; pieces give every token of a text once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regard.data.batching.sequences import split_into_windows, token_batches
from regard.text.encoding import Encoding


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
