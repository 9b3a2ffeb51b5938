"""Windows cover everything, and every token is answered once."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batching.windows import Window, windows
from regard.errors import InputError


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, int, int]:
    size = draw(st.integers(1, 40))
    return draw(st.integers(0, 300)), size, draw(st.integers(0, size - 1))


@given(cuts())
def test_every_token_is_in_a_window_and_owned_once(cut: tuple[int, int, int]) -> None:
    length, size, overlap = cut
    result = windows(length, size=size, overlap=overlap)
    assert {token for window in result for token in range(window.start, window.end)} == set(range(length))
    assert [token for window in result for token in range(window.own_start, window.own_end)] == list(range(length))
    for window in result:
        assert window.start <= window.own_start <= window.own_end <= window.end
        assert list(range(window.start, window.end))[window.own] == list(range(window.own_start, window.own_end))


@given(cuts())
def test_windows_are_full_and_overlap(cut: tuple[int, int, int]) -> None:
    length, size, overlap = cut
    result = windows(length, size=size, overlap=overlap)
    assert all(len(window) == min(size, length) for window in result)
    assert all(left.end - right.start >= overlap for left, right in pairwise(result))
    assert all(left.start < right.start for left, right in pairwise(result))


@given(cuts())
def test_no_window_too_many(cut: tuple[int, int, int]) -> None:
    length, size, overlap = cut
    limit = 1 if length <= size else 1 + math.ceil((length - size) / (size - overlap))
    assert len(windows(length, size=size, overlap=overlap)) == limit


@given(cuts())
def test_the_owner_shows_most_of_what_stands_around(cut: tuple[int, int, int]) -> None:
    length, size, overlap = cut
    result = windows(length, size=size, overlap=overlap)

    def context(window: Window, token: int) -> float:
        left = math.inf if window.start == 0 else token - window.start
        right = math.inf if window.end == length else window.end - 1 - token
        return min(left, right)

    for owner in result:
        for token in range(owner.own_start, owner.own_end):
            holders = [window for window in result if window.start <= token < window.end]
            assert context(owner, token) == max(context(window, token) for window in holders)


def test_an_empty_run_is_one_empty_window() -> None:
    assert windows(0, size=4, overlap=2) == [Window(0, 0, 0, 0)]


def test_the_last_window_is_moved_until_it_is_full() -> None:
    assert windows(7, size=4, overlap=1) == [Window(0, 4, 0, 4), Window(3, 7, 4, 7)]
    assert windows(6, size=4, overlap=1) == [Window(0, 4, 0, 3), Window(2, 6, 3, 6)]


@pytest.mark.parametrize(
    ("length", "size", "overlap", "message"),
    [
        (-1, 4, 1, "length of a text is -1"),
        (9, 0, 0, "window size is 0, expected at least 1"),
        (9, 4, 4, "cannot overlap by 4; use 0 to 3"),
        (9, 4, -1, "cannot overlap by -1"),
    ],
)
def test_invalid_arguments_are_refused(length: int, size: int, overlap: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        windows(length, size=size, overlap=overlap)
