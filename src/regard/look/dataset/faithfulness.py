"""How faithful explanations are, over many texts (ERASER, DeYoung et al. 2020).

comprehensiveness: how much the probability of the predicted answer falls when the most important words are erased, the
mean over 1, 5, 10, 20 and 50 % of the words; higher is better.
sufficiency: how much it falls when only these words are left; lower is better.
normalized: the comprehensiveness between the worst and the best order of words of each text, from 0 to 1, so that
models can be compared (Edin et al. 2024, https://arxiv.org/abs/2408.08137). The limits are those of a greedy search
and of all methods that are measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.data.sources.locate import DataLocation
from regard.errors import InputError
from regard.look.dataset.items import read_items
from regard.look.explain.exclusive import exclusive
from regard.look.explain.explain import make_scorer, word_scores
from regard.look.explain.methods import METHODS, find_method, methods_for
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.order_scores import OrderScores, order_scores, random_orders, word_order
from regard.look.explain.order_search import CachedScorer, normalize, searched_orders
from regard.look.explain.scorer import Scorer
from regard.metrics.confidence import Score, bootstrap
from regard.predict import Model
from regard.progress import OnProgress, Progress

RANDOM = "random"


def no_report() -> None:
    """Say nothing."""


@dataclass(frozen=True)
class MethodFaithfulness:
    """The scores of a method, each with a 95 % interval."""

    method: str
    comprehensiveness: Score
    sufficiency: Score
    normalized: Score | None  # None without limits


@dataclass(frozen=True)
class Faithfulness:
    """The faithfulness of several methods on the same texts, the most comprehensive first."""

    texts: int
    erased_by: str
    methods: tuple[MethodFaithfulness, ...]

    def __getitem__(self, name: str) -> MethodFaithfulness:
        for method in self.methods:
            if method.method == name:
                return method
        raise KeyError(name)

    def json(self) -> dict[str, Any]:
        return asdict(self)


def faithfulness(
    model: Model,
    data: DataLocation | Sequence[str],
    methods: Sequence[str] | None = None,
    *,
    max_rows: int | None = 100,
    limits: bool = True,
    seed: int = 0,
    steps: int | None = None,
    progress: OnProgress | None = None,
    **reading: Any,
) -> Faithfulness:
    """Measure methods on the texts of a data set, against random orders.

    methods: names; all that fit the network if not given. Random orders are always measured.
    max_rows: texts that are measured, a random sample; all if None.
    limits: also search the best and the worst order of each text, for `normalized`. That takes longer than most
        methods.
    reading: how the data is read, as of `regard.evaluate`: split, format, columns, encoding.
    """
    names = [find_method(name, model.network).name for name in methods or methods_for(model.network)]
    names = [name for name in dict.fromkeys(names) if name != RANDOM]
    items = read_items(model, data, max_rows=max_rows, **reading)
    rows: list[TextScores] = []
    steps_of_text = len(names) + 1
    for number, item in enumerate(items):
        scorer = make_scorer(model, item.text, item.pair)
        counter = itertools.count(number * steps_of_text + 1)

        def done(counter: Iterator[int] = counter) -> None:
            if progress is not None:
                progress(Progress("explanations", next(counter), len(items) * steps_of_text))

        if len(scorer.text.erasable_words) > 1:
            rows.append(measure(scorer, names, MethodOptions(steps, seed), limits=limits, done=done))
        else:  # nothing to order
            for _ in range(steps_of_text):
                done()
    return summarize(rows, scorer.erased_by)


def summarize(rows: Sequence[TextScores], erased_by: str) -> Faithfulness:
    """The means of the scores of all texts."""
    if not rows:
        raise InputError("no text has two words or more, so there is nothing to order.")
    results = [_summary(name, rows) for name in rows[0].methods]
    results.sort(key=lambda result: -result.comprehensiveness.value)
    return Faithfulness(len(rows), erased_by, tuple(results))


@dataclass(frozen=True)
class TextScores:
    """The scores of each method on one text, and the limits of the comprehensiveness."""

    methods: dict[str, OrderScores]
    limits: tuple[float, float] | None

    def normalized(self, name: str) -> float | None:
        """From 0 for the worst order to 1 for the best; None if all orders are equal."""
        return normalize(self.methods[name].comprehensiveness, self.limits)


def measure(
    scorer: Scorer, names: Sequence[str], options: MethodOptions, *, limits: bool, done: Callable[[], None] = no_report
) -> TextScores:
    """The scores of the methods on one text; `done` is called after each method, and at the end."""
    scorer = CachedScorer.wrap(scorer)
    orders = []
    with exclusive(scorer.network):
        for name in names:
            words = word_scores(scorer, METHODS[name].explain(scorer, options))
            orders.append(word_order(scorer, np.array(words)))
            done()
        searched = searched_orders(scorer) if limits else []
        chance = random_orders(scorer, seed=options.seed)
        scores = order_scores(scorer, [*orders, *searched, *chance])
    done()
    methods = dict(zip(names, scores, strict=False))
    methods[RANDOM] = OrderScores(*np.mean(scores[-len(chance) :], axis=0).tolist())
    values = [score.comprehensiveness for score in scores]
    return TextScores(methods, (min(values), max(values)) if limits else None)


def _summary(name: str, rows: Sequence[TextScores]) -> MethodFaithfulness:
    pairs = np.array([row.methods[name] for row in rows])
    normalized = [value for row in rows if (value := row.normalized(name)) is not None]
    return MethodFaithfulness(
        name,
        bootstrap(pairs[:, 0]),
        bootstrap(pairs[:, 1]),
        bootstrap(normalized) if normalized else None,
    )
