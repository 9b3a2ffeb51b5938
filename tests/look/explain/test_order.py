"""The order of words, and the best and the worst that a search finds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.order_scores import BINS, bin_sizes, order_scores, random_orders, word_order
from regard.look.explain.order_search import CachedScorer, greedy_order, normalize, searched_orders, text_faithfulness
from regard.look.explain.scorer import Scorer
from regard.progress import Progress

# Comprehensiveness and sufficiency equal a plain loop over texts with masks.


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


# The best and the worst order of words, and the faithfulness of one text between them.


def scorer_of(text: str) -> Any:
    return make_scorer(model("tiny-modernbert", {"sequence": 2}), text)


def test_limits_are_reached_by_few_other_orders_of_a_short_text() -> None:
    scorer = scorer_of("the soup was warm")
    orders = [np.array(order) for order in itertools.permutations(range(4))]
    values = [score.comprehensiveness for score in order_scores(scorer, orders)]
    highest, lowest = order_scores(scorer, [greedy_order(scorer, sign=1), greedy_order(scorer, sign=-1)])
    assert highest.comprehensiveness >= np.quantile(values, 0.8)
    assert lowest.comprehensiveness <= np.quantile(values, 0.2)


def test_a_cached_scorer_computes_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scorer_of(TEXT)
    masks = scorer.word_masks([0, 1, 2, 1])
    expected = scorer.erased_values(masks)
    cached = CachedScorer.wrap(scorer)
    assert np.allclose(cached.erased_values(masks), expected, atol=1e-6)
    assert len(cached.known) == 3
    monkeypatch.setattr(Scorer, "erased_values", None)
    assert np.allclose(cached.erased_values(masks[::-1].copy()), expected.flip(0), atol=1e-6)


def test_faithfulness_of_one_text() -> None:
    scorer, events = scorer_of(TEXT), list[Progress]()
    options = MethodOptions(progress=events.append)
    best, worst = searched_orders(scorer)
    words = np.empty(len(best))
    words[best] = -np.arange(len(best))  # the scores whose order is the best
    result = text_faithfulness(scorer, words, options)
    assert result.normalized == pytest.approx(1.0)
    assert events[-1].done == events[-1].total
    expected = np.mean([score.comprehensiveness for score in order_scores(scorer, random_orders(scorer))])
    assert result.random_comprehensiveness == pytest.approx(expected, abs=1e-6)
    words[worst] = -np.arange(len(worst))
    assert text_faithfulness(scorer, words, options).normalized == pytest.approx(0.0)
    assert text_faithfulness(scorer, words, options, limits=False).normalized is None


def test_equal_orders_have_no_normalized_score() -> None:
    assert normalize(0.5, (0.5, 0.5)) is None
    assert normalize(0.5, None) is None
    assert normalize(0.25, (0.0, 0.5)) == 0.5
