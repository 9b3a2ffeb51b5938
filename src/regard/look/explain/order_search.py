"""The best and the worst order of the words of a text, as far as a greedy search finds them.

Between these limits the comprehensiveness of a method is normalized, so that models can be compared (Edin et al. 2024,
https://arxiv.org/abs/2408.08137).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.look.explain.explanation import TextFaithfulness
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.order_scores import bin_sizes, order_scores, random_orders, word_order
from regard.look.explain.scorer import Erased, Scorer


@dataclass(frozen=True, eq=False)
class CachedScorer(Scorer):
    """A scorer that computes each text with erased words once: searches and methods ask for the same ones."""

    inner: Scorer | None = None
    known: dict[bytes, Tensor] = field(default_factory=dict)

    @classmethod
    def wrap(cls, scorer: Scorer) -> Self:
        own = {one.name: getattr(scorer, one.name) for one in fields(Scorer)}
        return cls(**own, inner=scorer)

    def erased_values(self, erased_BT: Erased) -> Tensor:
        keys = [np.packbits(row).tobytes() for row in erased_BT]
        rows = {key: number for number, key in enumerate(keys) if key not in self.known}
        if rows:
            assert self.inner is not None
            values = self.inner.erased_values(erased_BT[list(rows.values())])
            self.known.update(zip(rows, values, strict=True))
        return torch.stack([self.known[key] for key in keys])


def searched_orders(scorer: Scorer, options: MethodOptions | None = None) -> list[NDArray[np.int64]]:
    """An order of words that lowers the probability as fast as the search can, and one that lowers it least."""
    options = options or MethodOptions()
    steps = sorted(set(bin_sizes(len(scorer.text.erasable_words))))
    orders = []
    for number, sign in enumerate((1, -1)):
        orders.append(greedy_order(scorer, sign=sign))
        options.report("search", (number + 1) * len(steps), 2 * len(steps))
    return orders


def greedy_order(scorer: Scorer, *, sign: int) -> NDArray[np.int64]:
    """An order of words found by search: with sign 1 it lowers the probability as fast as it can, with -1 least.

    At each size of a bin, every word that is left is erased on its own besides those before it, and those that change
    the probability most come next.
    """
    left = list(scorer.text.erasable_words)
    order: list[int] = []
    for size in sorted(set(bin_sizes(len(left)))):
        before = scorer.word_masks(order).any(0)
        chances = scorer.erased_probabilities(scorer.word_masks(left) | before)
        ranked = [left[i] for i in np.argsort(sign * chances, kind="stable")]
        order += ranked[: size - len(order)]
        left = [word for word in left if word not in set(order)]
    return np.array([*order, *left], np.int64)


def normalize(comprehensiveness: float, limits: tuple[float, float] | None) -> float | None:
    """From 0 for the worst order to 1 for the best; None if all orders are equal, or the limits are not known."""
    if limits is None or limits[1] - limits[0] < 1e-9:
        return None
    return (comprehensiveness - limits[0]) / (limits[1] - limits[0])


def text_faithfulness(
    scorer: Scorer, words_W: NDArray[np.float64], options: MethodOptions, *, limits: bool = True
) -> TextFaithfulness:
    """The faithfulness of word scores on one text, next to random orders, and to the limits that a search finds."""
    scorer = CachedScorer.wrap(scorer)
    searched = searched_orders(scorer, options) if limits else []
    chance = random_orders(scorer, seed=options.seed)
    own, *others = order_scores(scorer, [word_order(scorer, words_W), *searched, *chance])
    values = [one.comprehensiveness for one in (own, *others)]
    random_comprehensiveness, random_sufficiency = np.mean(others[-len(chance) :], axis=0).tolist()
    limit_values = (min(values), max(values)) if limits else None
    return TextFaithfulness(
        *own, random_comprehensiveness, random_sufficiency, normalize(own.comprehensiveness, limit_values)
    )
