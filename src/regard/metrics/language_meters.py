"""Meters of language models: hidden words that were guessed, what they cost, and next sentences."""

from __future__ import annotations

from typing import NamedTuple

from regard.metrics.confidence import Score
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
