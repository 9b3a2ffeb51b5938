"""Comprehensiveness and sufficiency of an order of words (ERASER, DeYoung et al. 2020).

The most important 1, 5, 10, 20 and 50 % of the words are erased, or are all that is left; the scores are the mean drops
of the probability. Words are whole: all tokens of a word are erased together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.look.explain.scorer import Erased, Scorer

BINS = (0.01, 0.05, 0.10, 0.20, 0.50)  # fractions of the words
RANDOM_ORDERS = 5


class OrderScores(NamedTuple):
    """comprehensiveness: the mean drop when the first words are erased. sufficiency: when only they are left."""

    comprehensiveness: float
    sufficiency: float


def bin_sizes(words: int) -> list[int]:
    """The number of words of each bin, at least one."""
    return [max(1, math.ceil(fraction * words)) for fraction in BINS]


def order_masks(scorer: Scorer, order: NDArray[np.int64]) -> Erased:
    """(2 × bins, T) tokens that are erased: the first words of the order, then all but these."""
    words = scorer.word_masks(order.tolist())
    first = np.stack([words[:size].any(0) for size in bin_sizes(len(order))])
    return np.concatenate((first, ~first & scorer.all_erased))


def order_scores(scorer: Scorer, orders: list[NDArray[np.int64]]) -> list[OrderScores]:
    """The scores of several orders of the erasable words of a text, the most important first."""
    masks = np.concatenate([scorer.nothing_erased, *(order_masks(scorer, order) for order in orders)])
    unique, inverse = np.unique(masks, axis=0, return_inverse=True)
    chances = scorer.erased_probabilities(unique)[inverse.reshape(-1)]
    drops = (chances[0] - chances[1:]).reshape(len(orders), 2, len(BINS)).mean(-1)
    return [OrderScores(float(erased), float(left)) for erased, left in drops]


def word_order(scorer: Scorer, words_W: NDArray[np.float64]) -> NDArray[np.int64]:
    """The erasable words by falling score."""
    numbers = np.array(scorer.text.erasable_words, np.int64)
    order: NDArray[np.int64] = numbers[np.argsort(-words_W[numbers], kind="stable")]
    return order


def random_orders(scorer: Scorer, *, count: int = RANDOM_ORDERS, seed: int = 0) -> list[NDArray[np.int64]]:
    """Random orders of the erasable words, the same for the same text and seed."""
    generator = np.random.default_rng([seed, *scorer.text.sequences[0].all_ids])
    return [generator.permutation(np.array(scorer.text.erasable_words, np.int64)) for _ in range(count)]
