"""Meters of numbers: regression, means, and perplexity."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.errors import InputError, pluralize
from regard.metrics.confidence import (
    BLOCK,
    Replicates,
    Score,
    Statistic,
    Sums,
    interval,
    mean,
    require_rows,
    spearman_derivatives,
    spearman_interval,
)
from regard.metrics.paired.rows import AT_LEAST_0, NO_LIMITS, RowScore, RowTable, joined
from regard.metrics.registry import CustomScores
from regard.metrics.scores import explained_variance, mae, mse, pearson, r2, ratio, spearman


class NumberMeter:
    """One number per row: Pearson and Spearman correlation, errors, R². Keeps 16 bytes per row for the ranks."""

    main, higher_is_better = "pearson", True

    def __init__(self, *, seed: int = 0) -> None:
        self._seed = seed
        self._predicted, self._gold = array("d"), array("d")
        self._custom = CustomScores("number", seed=seed)

    @property
    def rows(self) -> int:
        return len(self._gold)

    def add(self, predicted: float, gold: float) -> None:
        ours, theirs = float(predicted), float(gold)
        if not (math.isfinite(ours) and math.isfinite(theirs)):
            raise InputError(f"Row {self.rows + 1} has {ours} predicted and {theirs} as gold; expected finite numbers.")
        self._custom.add(ours, theirs)
        self._predicted.append(ours)
        self._gold.append(theirs)

    def add_many(self, predicted: ArrayLike, gold: ArrayLike) -> None:
        """Two arrays of one length."""
        ours, theirs = np.ravel(np.asarray(predicted, np.float64)), np.ravel(np.asarray(gold, np.float64))
        if len(ours) != len(theirs) or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
            raise InputError(
                f"{pluralize(len(ours), 'number')} predicted for {len(theirs)} gold ones, from row {self.rows + 1} on; "
                "expected as many, and all of them finite."
            )
        if self._custom:
            for predicted_number, gold_number in zip(ours.tolist(), theirs.tolist(), strict=True):
                self._custom.add(predicted_number, gold_number)
        self._predicted.frombytes(ours.tobytes())
        self._gold.frombytes(theirs.tobytes())

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        ours, theirs = np.array(self._predicted), np.array(self._gold)
        sampled = self._replicate_scores(ours, theirs)
        of = {"pearson": pearson, "mse": mse, "mae": mae, "r2": r2}
        scores = {name: interval(score(ours, theirs), sampled[name]) for name, score in of.items()}
        ranked = spearman_interval(spearman(ours, theirs), ours, theirs)
        return {"pearson": scores.pop("pearson"), "spearman": ranked, **scores, **self._custom.scores()}

    def keep_rows(self) -> None:
        self._custom.keep_rows()  # the numbers themselves are always kept

    def row_table(self) -> RowTable:
        """Sums of squares of standardized numbers; for Spearman's correlation its derivative by each row."""
        ours, theirs = np.array(self._predicted), np.array(self._gold)
        x, y = ((part - part.mean()) / (float(part.std()) or 1.0) for part in (ours, theirs))
        error, one = ours - theirs, np.ones(len(ours))
        rank_value = spearman(ours, theirs)
        moves = spearman_derivatives(rank_value, ours, theirs)
        columns = [x, y, x * x, y * y, x * y, one, error**2, np.abs(error), theirs - theirs.mean(), moves]
        columns.append(columns[8] ** 2)
        scores = {
            "pearson": RowScore((0, 1, 2, 3, 4, 5), _pearson, limits=(-1.0, 1.0)),
            "spearman": RowScore(
                (9,), lambda sums: np.clip(rank_value + sums[0], -1, 1), swappable=False, limits=(-1.0, 1.0)
            ),
            "mse": RowScore((6, 5), higher_is_better=False, limits=AT_LEAST_0),
            "mae": RowScore((7, 5), higher_is_better=False, limits=AT_LEAST_0),
            "r2": RowScore((6, 8, 10, 5), _r2, limits=(-np.inf, 1.0)),
        }
        table = RowTable(np.stack(columns, axis=1), {self.main: scores[self.main], **scores})
        return joined([table, *self._custom.row_tables()])

    def _replicate_scores(self, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> dict[str, Any]:
        """Bootstrap replicates from sums of squares of standardized numbers, which avoids cancellation."""
        unit = float(np.abs(ours - theirs).max()) or 1.0
        scale = [float(part.std()) or 1.0 for part in (ours, theirs)]
        replicates = Replicates(8, seed=self._seed)
        for start in range(0, self.rows, 64 * BLOCK):
            part = slice(start, start + 64 * BLOCK)
            x, y = (ours[part] - ours.mean()) / scale[0], (theirs[part] - theirs.mean()) / scale[1]
            error = (ours[part] - theirs[part]) / unit
            replicates.add_many(np.stack([x, y, x * x, y * y, x * y, error**2, np.abs(error), np.ones(len(x))], axis=1))
        x, y, xx, yy, xy, squares, sizes, rows = replicates.sums()
        gold_spread = np.maximum(yy - ratio(y * y, rows), 0)
        return {
            "pearson": _pearson(np.stack([x, y, xx, yy, xy, rows])),
            "mse": mean(np.stack([squares * unit**2, rows])),
            "mae": mean(np.stack([sizes * unit, rows])),
            "r2": np.where(rows > 0, explained_variance(squares * unit**2, gold_spread * scale[1] ** 2), np.nan),
        }


def _pearson(sums: Sums) -> Any:
    x, y, xx, yy, xy, rows = sums
    spread = np.maximum(xx - ratio(x * x, rows), 0), np.maximum(yy - ratio(y * y, rows), 0)
    return np.clip(ratio(xy - ratio(x * y, rows), np.sqrt(spread[0] * spread[1])), -1, 1)


def _r2(sums: Sums) -> Any:
    squares, gold, gold_squares, rows = sums
    return explained_variance(squares, np.maximum(gold_squares - ratio(gold * gold, rows), 0))


class MeanMeter:
    """The mean of a number: `add(total, count)`, such as correct masked tokens and all masked tokens."""

    def __init__(self, name: str = "mean", *, higher_is_better: bool = True, seed: int = 0) -> None:
        self.main, self.higher_is_better = name, higher_is_better
        self._replicates = Replicates(2, seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, total: float, count: float = 1) -> None:
        """Add the sum of one record and its count."""
        if not math.isfinite(total) or count < 0:
            raise InputError(f"Record {self.rows + 1} has the sum {total} of {count}; expected a number, and a count.")
        self._replicates.add((total, count))

    def keep_rows(self) -> None:
        self._replicates.keep_rows()

    def row_table(self) -> RowTable:
        score = RowScore((0, 1), higher_is_better=self.higher_is_better, limits=NO_LIMITS)
        return RowTable(self._replicates.all_rows(), {self.main: score})

    def scores(self) -> dict[str, Score]:
        require_rows(self._replicates.totals()[1])
        return self._replicates.scores(**{self.main: mean})


class PerplexityMeter:
    """Perplexity: exp of the mean negative log-likelihood (natural logarithm) of a token. Lower is better.

    Short tokens are easier to predict, so models with different vocabularies are compared by word or by character.
    """

    main, higher_is_better = "perplexity", False

    def __init__(self, *, seed: int = 0) -> None:
        self._replicates = Replicates(4, seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, nll: float, count: int, characters: int = 0, words: int = 0) -> None:
        """Add the negative log-likelihood of a record, its tokens, and optionally its characters and words."""
        if not math.isfinite(nll) or min(count, characters, words) < 0:
            raise InputError(
                f"Record {self.rows + 1} has the sum {nll} over {count} tokens, {characters} characters and {words} "
                "words; expected a finite number and counts."
            )
        self._replicates.add((nll, count, characters, words))

    def keep_rows(self) -> None:
        self._replicates.keep_rows()

    def row_table(self) -> RowTable:
        rows = self._replicates.all_rows()
        _, _, characters, words = rows.sum(0)
        statistics: dict[str, tuple[tuple[int, ...], Statistic]] = {
            "perplexity": ((0, 1), _perplexity),
            "nll": ((0, 1), mean),
        }
        if words:
            statistics["word_perplexity"] = (0, 3), _perplexity
        if characters:
            statistics["bits_per_character"] = (0, 2), _bits
        scores = {
            name: RowScore(columns, of, higher_is_better=False, limits=AT_LEAST_0)
            for name, (columns, of) in statistics.items()
        }
        return RowTable(rows, scores)

    def scores(self) -> dict[str, Score]:
        _, tokens, characters, words = self._replicates.totals()
        require_rows(tokens)
        scores = self._replicates.scores(perplexity=_perplexity, nll=mean)
        if words:
            scores |= self._replicates.scores(word_perplexity=lambda sums: _perplexity(sums[::3]))
        if characters:
            scores |= self._replicates.scores(bits_per_character=lambda sums: mean(sums[:3:2]) / math.log(2))
        return scores


def _bits(sums: Sums) -> Any:
    return mean(sums) / math.log(2)


def _perplexity(sums: Sums) -> Any:
    with np.errstate(over="ignore"):  # infinity is the right result
        return np.exp(mean(sums))
