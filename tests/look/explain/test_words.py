"""Words of texts in any script."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.explain.words import is_unspaced, word_spans


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, it's 3.5!", ["Don't", "stop", ",", "it's", "3.5", "!"]),
        ("naïve café’s end.", ["naïve", "café’s", "end", "."]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("a\u0301b 👩‍👩", ["a\u0301b", "👩‍", "👩"]),
        ("a_b 'quoted'", ["a_b", "'", "quoted", "'"]),
    ],
)
def test_words_keep_their_marks_and_apostrophes(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == words


@given(st.text(max_size=80))
def test_spans_cover_everything_but_spaces_once(text: str) -> None:
    spans = word_spans(text)
    assert all(start < end for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    covered = {i for start, end in spans for i in range(start, end)}
    assert all(i in covered or character.isspace() for i, character in enumerate(text))


def test_scripts_without_spaces_are_recognized() -> None:
    assert is_unspaced("我喜欢")
    assert is_unspaced("สวัสดี")
    assert not is_unspaced("soup सूप суп")
