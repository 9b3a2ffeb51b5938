"""Meters of language models: masked tokens, perplexity in both directions, next sentences, sentence pairs."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from regard.metrics.confidence import Score, require_rows, wilson, with_ones
from regard.metrics.number_meters import MeanMeter, PerplexityMeter
from regard.metrics.paired.rows import RowScore, RowTable, joined


class MaskedCounts(NamedTuple):
    """Results of one sequence: masked tokens, how many were predicted, and their negative log-likelihood."""

    correct: int
    tokens: int
    nll: float
    next_sentence: bool | None = None  # whether next-sentence prediction was right; None without it


class MaskedMeter:
    """Accuracy and perplexity of masked tokens, and accuracy of next-sentence prediction (Devlin et al. 2019)."""

    main, higher_is_better = "masked_accuracy", True

    def __init__(self, *, seed: int = 0) -> None:
        self._words = MeanMeter(self.main, seed=seed)
        self._nll = PerplexityMeter(seed=seed)
        self._next = MeanMeter("next_accuracy", seed=seed)

    @property
    def rows(self) -> int:
        return self._words.rows

    def add(self, predicted: MaskedCounts, gold: object = None) -> None:
        """Add one sequence; the gold values are part of the counts."""
        self._words.add(predicted.correct, predicted.tokens)
        self._nll.add(predicted.nll, predicted.tokens)
        if predicted.next_sentence is not None:
            self._next.add(float(predicted.next_sentence))

    def keep_rows(self) -> None:
        for meter in (self._words, self._nll, self._next):
            meter.keep_rows()

    def row_table(self) -> RowTable:
        parts = [self._words.row_table(), self._nll.row_table()]
        return joined([*parts, self._next.row_table()] if self._next.rows else parts)

    def scores(self) -> dict[str, Score]:
        scores = {**self._words.scores(), **self._nll.scores()}
        return scores | self._next.scores() if self._next.rows else scores


class BidirectionalMeter:
    """Perplexity of tokens from the left context, from the right context, and of both together."""

    main, higher_is_better = "perplexity", False

    def __init__(self, *, seed: int = 0) -> None:
        self._both, self._ahead, self._back = (PerplexityMeter(seed=seed) for _ in range(3))

    @property
    def rows(self) -> int:
        return self._both.rows

    def add(self, nll: tuple[float, float], counts: tuple[int, int]) -> None:
        """Add a sequence: negative log-likelihoods and token counts, forward and backward."""
        self._both.add(sum(nll), sum(counts))
        self._ahead.add(nll[0], counts[0])
        self._back.add(nll[1], counts[1])

    def keep_rows(self) -> None:
        for meter in (self._both, self._ahead, self._back):
            meter.keep_rows()

    def row_table(self) -> RowTable:
        parts = [self._both.row_table()]
        for name, meter in (("ahead", self._ahead), ("back", self._back)):
            table = meter.row_table()
            parts.append(replace(table, scores={f"perplexity_{name}": table.scores["perplexity"]}))
        return joined(parts)

    def scores(self) -> dict[str, Score]:
        ahead, back = (meter.scores()[self.main] for meter in (self._ahead, self._back))
        return {**self._both.scores(), "perplexity_ahead": ahead, "perplexity_back": back}


class PreferenceMeter:
    """The fraction of pairs whose correct sentence is more likely, also by kind (BLiMP, Warstadt et al. 2020)."""

    main, higher_is_better = "accuracy", True

    def __init__(self) -> None:
        self._right: Counter[str | None] = Counter()
        self._pairs: Counter[str | None] = Counter()
        self._all_rows: array[int] | None = None

    @property
    def rows(self) -> int:
        return self._pairs.total()

    def add(self, right: bool, kind: str | None = None) -> None:
        """Add a pair: whether the correct sentence was preferred, and the kind of error of the other one."""
        self._pairs[kind] += 1
        self._right[kind] += right
        if self._all_rows is not None:
            self._all_rows.append(right)

    def keep_rows(self) -> None:
        self._all_rows = array("b")

    def row_table(self) -> RowTable:
        rows = np.array(self._all_rows or (), np.float64)
        return RowTable(with_ones(rows), {self.main: RowScore((0, 1))})

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        kinds = sorted(kind for kind in self._pairs if kind is not None) if len(self._pairs) > 1 else []
        each = {f"{self.main} {kind}": wilson(self._right[kind], self._pairs[kind]) for kind in kinds}
        return {self.main: wilson(self._right.total(), self.rows), **each}
