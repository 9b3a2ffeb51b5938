"""The best and the worst order of words, and the faithfulness of one text between them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.look.tiny_models import TEXT, model

from regard.look.explain.explain import make_scorer
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.order_scores import order_scores, random_orders
from regard.look.explain.order_search import CachedScorer, greedy_order, normalize, searched_orders, text_faithfulness
from regard.look.explain.scorer import Scorer
from regard.progress import Progress


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
