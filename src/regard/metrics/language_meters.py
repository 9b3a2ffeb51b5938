"""Meters of language models: hidden words that were guessed, what they cost, next sentences, and preferences."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from regard.metrics.confidence import Score, some_rows, wilson
from regard.metrics.number_meters import MeanMeter, NllMeter


class Guessed(NamedTuple):
    """What a model made of one sequence: of `words` hidden ones so many right, their negative log-likelihood."""

    right: int
    words: int
    nll: float
    follows: bool | None = None  # whether it told a next sentence from another one; None where it was not asked


class MaskedMeter:
    """Share of hidden words that were guessed, perplexity of them, and share of next sentences told from others."""

    main, higher = "masked_accuracy", True

    def __init__(self, *, seed: int = 0) -> None:
        self._words = MeanMeter(self.main, seed=seed)
        self._nll = NllMeter(seed=seed)
        self._next = MeanMeter("next_accuracy", seed=seed)

    @property
    def rows(self) -> int:
        return self._words.rows

    def add(self, predicted: Guessed, gold: object = None) -> None:
        """One sequence. What is true of it is counted in what was made of it."""
        self._words.add(predicted.right, predicted.words)
        self._nll.add(predicted.nll, predicted.words)
        if predicted.follows is not None:
            self._next.add(float(predicted.follows))

    def scores(self) -> dict[str, Score]:
        found = {**self._words.scores(), **self._nll.scores()}
        return found | self._next.scores() if self._next.rows else found


class PreferenceMeter:
    """The share of pairs whose good sentence is the likelier one; also by kind, where there are several."""

    main, higher = "accuracy", True

    def __init__(self) -> None:
        self._right: Counter[str | None] = Counter()
        self._seen: Counter[str | None] = Counter()

    @property
    def rows(self) -> int:
        return self._seen.total()

    def add(self, right: bool, kind: str | None = None) -> None:
        """Whether the good sentence of a pair was preferred, and what the other one has wrong."""
        self._seen[kind] += 1
        self._right[kind] += right

    def scores(self) -> dict[str, Score]:
        some_rows(self.rows)
        kinds = sorted(kind for kind in self._seen if kind is not None) if len(self._seen) > 1 else []
        each = {f"{self.main} {kind}": wilson(self._right[kind], self._seen[kind]) for kind in kinds}
        return {self.main: wilson(self._right.total(), self.rows), **each}
