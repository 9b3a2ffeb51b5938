"""Comprehensiveness and sufficiency equal a plain loop over texts with masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.order_scores import BINS, bin_sizes, order_scores, random_orders, word_order


def test_scores_equal_a_loop_over_masked_texts() -> None:
    loaded = model("tiny-modernbert", {"sequence": 2})
    scorer: Any = make_scorer(loaded, TEXT)
    label = scorer.target.info.label
    words = TEXT.split()
    order = np.array([3, 1, 4, 0, 5, 7, 2, 6])
    (scores,) = order_scores(scorer, [order])

    def probability(erased: set[int]) -> float:
        pieces = []
        for number, word in enumerate(words):
            count = len(loaded.require_tokenizer().encode(word, special=False).ids)
            pieces.append(" ".join(["[MASK]"] * count) if number in erased else word)
        return loaded.predict([" ".join(pieces)])[0].scores[label]

    whole = probability(set())
    sizes = [max(1, math.ceil(fraction * len(words))) for fraction in BINS]
    erased = np.mean([whole - probability(set(order[:size].tolist())) for size in sizes])
    left = np.mean([whole - probability(set(order[size:].tolist())) for size in sizes])
    assert scores.comprehensiveness == pytest.approx(erased, abs=1e-5)
    assert scores.sufficiency == pytest.approx(left, abs=1e-5)


@given(st.integers(1, 5000))
def test_every_bin_has_a_word_and_none_has_more_than_half_of_many(words: int) -> None:
    sizes = bin_sizes(words)
    assert sizes == sorted(sizes)
    assert 1 <= sizes[0] <= sizes[-1] <= max(1, math.ceil(words / 2))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8))
def test_words_are_ordered_by_falling_score(scores: list[float]) -> None:
    order = word_order(SCORER, np.array(scores))
    assert sorted(order.tolist()) == list(range(8))
    ranked = np.array(scores)[order]
    assert (np.diff(ranked) <= 0).all()


SCORER = make_scorer(model("tiny-bert", {"sequence": 2}), TEXT)


def test_random_orders_are_the_same_for_the_same_seed() -> None:
    first, again, other = (random_orders(SCORER, seed=seed) for seed in (0, 0, 1))
    assert [one.tolist() for one in first] == [one.tolist() for one in again]
    assert [one.tolist() for one in first] != [one.tolist() for one in other]
