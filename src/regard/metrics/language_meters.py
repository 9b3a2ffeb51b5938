"""Meters of language models: hidden words that were guessed, what they cost, next sentences, and preferences."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from regard.metrics.confidence import Score, require_rows, wilson
from regard.metrics.number_meters import MeanMeter, PerplexityMeter


class MaskedCounts(NamedTuple):
    """What a model made of one sequence: of `words` hidden ones so many right, their negative log-likelihood."""

    correct: int
    tokens: int
    nll: float
    next_sentence: bool | None = None  # whether it told a next sentence from another one; None where it was not asked


class MaskedMeter:
    """Share of hidden words that were guessed, perplexity of them, and share of next sentences told from others."""

    main, higher_is_better = "masked_accuracy", True

    def __init__(self, *, seed: int = 0) -> None:
        self._words = MeanMeter(self.main, seed=seed)
        self._nll = PerplexityMeter(seed=seed)
        self._next = MeanMeter("next_accuracy", seed=seed)

    @property
    def rows(self) -> int:
        return self._words.rows

    def add(self, predicted: MaskedCounts, gold: object = None) -> None:
        """One sequence. What is true of it is counted in what was made of it."""
        self._words.add(predicted.correct, predicted.tokens)
        self._nll.add(predicted.nll, predicted.tokens)
        if predicted.next_sentence is not None:
            self._next.add(float(predicted.next_sentence))

    def scores(self) -> dict[str, Score]:
        scores = {**self._words.scores(), **self._nll.scores()}
        return scores | self._next.scores() if self._next.rows else scores


class BidirectionalMeter:
    """Perplexity of words guessed from what stands before them, from what stands after, and of both together."""

    main, higher_is_better = "perplexity", False

    def __init__(self, *, seed: int = 0) -> None:
        self._both, self._ahead, self._back = (PerplexityMeter(seed=seed) for _ in range(3))

    @property
    def rows(self) -> int:
        return self._both.rows

    def add(self, nll: tuple[float, float], counts: tuple[int, int]) -> None:
        """The sums over a sequence, ahead and back, and how many words they are over."""
        self._both.add(sum(nll), sum(counts))
        self._ahead.add(nll[0], counts[0])
        self._back.add(nll[1], counts[1])

    def scores(self) -> dict[str, Score]:
        ahead, back = (meter.scores()[self.main] for meter in (self._ahead, self._back))
        return {**self._both.scores(), "perplexity_ahead": ahead, "perplexity_back": back}


class PreferenceMeter:
    """The share of pairs whose good sentence is the likelier one; also by kind, where there are several."""

    main, higher_is_better = "accuracy", True

    def __init__(self) -> None:
        self._right: Counter[str | None] = Counter()
        self._pairs: Counter[str | None] = Counter()

    @property
    def rows(self) -> int:
        return self._pairs.total()

    def add(self, right: bool, kind: str | None = None) -> None:
        """Whether the good sentence of a pair was preferred, and what the other one has wrong."""
        self._pairs[kind] += 1
        self._right[kind] += right

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        kinds = sorted(kind for kind in self._pairs if kind is not None) if len(self._pairs) > 1 else []
        each = {f"{self.main} {kind}": wilson(self._right[kind], self._pairs[kind]) for kind in kinds}
        return {self.main: wilson(self._right.total(), self.rows), **each}
