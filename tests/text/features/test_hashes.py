"""Hashes of n-grams: the same n-grams as scikit-learn's analyzers find."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from regard.text.features.hashes import (
    Hashes,
    character_hashes,
    code_points,
    split_keys,
    unique_keys,
    word_hashes,
)

WORD = r"\w+(?:['’]\w+)*|[^\w\s]"
TEXTS = st.text(st.sampled_from("ab é'’.,!_ \t\n中🙂İß1"), max_size=30)


def grams(text: str, *, words: bool) -> set[str]:
    options = {"analyzer": "word", "token_pattern": WORD, "ngram_range": (1, 2)}
    if not words:
        options = {"analyzer": "char_wb", "ngram_range": (2, 5)}
    return set(CountVectorizer(**options).build_analyzer()(text))


def hashes(texts: list[str], *, words: bool) -> list[set[int]]:
    compute: Callable[..., Hashes] = word_hashes if words else character_hashes
    keys = compute(code_points(texts, lowercase=True), *((1, 2) if words else (2, 5)))
    values, owners = split_keys(unique_keys(keys))
    return [set(values[owners == row].tolist()) for row in range(len(texts))]


@pytest.mark.parametrize("words", [True, False])
@settings(deadline=None)  # the first call computes tables
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_have_the_n_grams_of_scikit_learn(words: bool, texts: list[str]) -> None:
    """Equal n-grams have equal hashes and others do not, within a text and across texts."""
    expected = [grams(text, words=words) for text in texts]
    actual = hashes(texts, words=words)
    assert [len(one) for one in actual] == [len(one) for one in expected]
    for row in range(len(texts)):
        for other in range(row):
            assert len(actual[row] & actual[other]) == len(expected[row] & expected[other])


def test_the_hash_of_an_n_gram_does_not_depend_on_where_it_is() -> None:
    (alone,), (_, second) = hashes(["warm soup"], words=True), hashes(["cold tea.", "the warm soup"], words=True)
    assert alone < second


def test_surrogates_and_empty_texts() -> None:
    first, second, third = hashes(["", "\ud800 a", " \n "], words=True)
    assert (len(first), len(second), len(third)) == (0, 3, 0)


def test_words_are_those_of_the_regular_expression() -> None:
    text = "It’s o'clock, rock 'n' roll_1!"
    assert len(hashes([text], words=True)[0]) == len(grams(text, words=True))
    assert re.findall(WORD, text)[:2] == ["It’s", "o'clock"]


def test_keys_are_sorted_and_unique() -> None:
    keys = unique_keys(np.array([5 << 16, 3 << 16 | 1, 5 << 16, 3 << 16], np.uint64))
    values, owners = split_keys(keys)
    assert values.tolist() == [3, 3, 5]
    assert owners.tolist() == [0, 1, 0]
