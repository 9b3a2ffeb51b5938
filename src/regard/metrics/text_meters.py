"""Meters of tags, entities, and answers to questions."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError
from regard.metrics.answers import answer_scores, best_threshold
from regard.metrics.confidence import Replicates, Score, Sums, bootstrap, interval, mean, require_rows, wilson
from regard.metrics.entities import EntityCounts, check_same_length, entity_spans, strict_spans, token_hits
from regard.metrics.paired.rows import RowScore, RowTable, joined
from regard.metrics.registry import CustomScores
from regard.metrics.report import (
    NO_ENTITY,
    ClassificationReport,
    ConfusionMatrix,
    NamedConfusion,
    add_entities,
    averages,
    class_scores,
)
from regard.metrics.scores import f1, ratio

ANSWERED = ("no answer", "answer")


class EntityMeter:
    """Entities from the tags of a record: F1 as conlleval counts it, and by strict IOB2 (`f1_strict`)."""

    main, higher_is_better = "f1", True

    def __init__(self, *, seed: int = 0) -> None:
        self.lenient, self.strict = EntityCounts(), EntityCounts(strict=True)
        self._replicates = Replicates(6, seed=seed)
        self._confusion = NamedConfusion()
        self._custom = CustomScores("entities", seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, predicted: Sequence[str], gold: Sequence[str]) -> None:
        check_same_length(predicted, gold)
        self._custom.add(predicted, gold)
        ours, theirs = entity_spans(predicted), entity_spans(gold)
        our_strict, their_strict = strict_spans(ours, predicted), strict_spans(theirs, gold)
        strictly = self.strict.add_spans(our_strict, their_strict)
        self._replicates.add((*self.lenient.add_spans(ours, theirs), *strictly))
        add_entities(self._confusion, our_strict, their_strict)

    def report(self) -> ClassificationReport:
        """Scores of each type by strict IOB2, and the confusion of types with the right boundaries."""
        types, counts = self.strict.types, self.strict.counts()
        if not types:
            return ClassificationReport("entity")
        matrix = ConfusionMatrix.of_names(self._confusion.cells, [*types, NO_ENTITY])
        return ClassificationReport("entity", class_scores(counts, types), averages(counts, micro=True), matrix)

    def per_type(self) -> dict[str, dict[str, float]]:
        """Precision, recall, F1 and support of each type, as conlleval has them."""
        return self.lenient.per_type()

    def keep_rows(self) -> None:
        self._replicates.keep_rows()
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        scores = {
            "f1": RowScore((0, 1, 2), _f1),
            "precision": RowScore((0, 1), _fraction),
            "recall": RowScore((0, 2), _fraction),
            "f1_strict": RowScore((3, 4, 5), _f1),
        }
        return joined([RowTable(self._replicates.all_rows(), scores), *self._custom.row_tables()])

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        scores = self._replicates.scores(
            f1=lambda sums: _f1(sums[:3]),
            precision=lambda sums: _fraction(sums[:2]),
            recall=lambda sums: _fraction(sums[:3:2]),
            f1_strict=lambda sums: _f1(sums[3:]),
        )
        return scores | self._custom.scores()


def _f1(sums: Sums) -> Any:
    return f1(*sums)


def _fraction(sums: Sums) -> Any:
    return ratio(sums[0], sums[1])


class TokenMeter:
    """The fraction of words with the right tag. The interval takes into account that words of a record are related."""

    main, higher_is_better = "accuracy", True

    def __init__(self, *, seed: int = 0) -> None:
        self._replicates = Replicates(2, seed=seed)
        self._confusion = NamedConfusion()
        self._custom = CustomScores("tags", seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, predicted: Sequence[object], gold: Sequence[object]) -> None:
        self._replicates.add(token_hits(predicted, gold))
        self._custom.add(predicted, gold)
        self._confusion.add_many(gold, predicted)

    def report(self) -> ClassificationReport:
        """Scores of each tag over all words."""
        return self._confusion.report("tag")

    def keep_rows(self) -> None:
        self._replicates.keep_rows()
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        table = RowTable(self._replicates.all_rows(), {"accuracy": RowScore((0, 1))})
        return joined([table, *self._custom.row_tables()])

    def scores(self) -> dict[str, Score]:
        require_rows(self._replicates.totals()[1])
        return self._replicates.scores(accuracy=mean) | self._custom.scores()


class AnswerMeter:
    """Answers to questions: F1 and exact match, as SQuAD counts them.

    If some questions have no answer, both kinds are also scored separately (`has_answer_f1`, `has_answer_exact`,
    `no_answer_exact`). Where records come with `no_answer`, a question is left unanswered above `threshold`, and
    `best_f1`, `best_exact` are the scores with the threshold that fits these records best, as the official script finds
    it. They are a little too good, since it was found on the same records; their intervals take it as given.
    `no_answer` is the score of no answer less that of the best answer, and is kept: 18 bytes a row.
    """

    main, higher_is_better = "f1", True

    def __init__(self, *, threshold: float = 0.0, seed: int = 0) -> None:
        self.threshold = threshold
        self._seed = seed
        self._replicates = Replicates(6, seed=seed)  # exact, f1, 1: of all rows, then of those with an answer
        self._exact, self._f1, self._no_answer, self._flags = array("b"), array("d"), array("d"), array("b")
        self._confusion = NamedConfusion()
        self._custom = CustomScores("answer", seed=seed)

    @property
    def rows(self) -> int:
        return self._replicates.rows

    def add(self, predicted: str, gold: Sequence[str], no_answer: float | None = None) -> None:
        """Add the best answer, the gold answers (none: unanswerable), and the score of leaving it unanswered."""
        if self.rows and (no_answer is not None) != bool(self._flags):
            raise InputError("Some records come with a no-answer score and some without; expected all or none.")
        if no_answer is not None and not math.isfinite(no_answer):
            raise InputError(f"Record {self.rows + 1} has the no-answer score {no_answer}; expected a finite number.")
        exact, words = answer_scores(predicted, gold)
        answerable = bool(gold)
        answered_now = bool(predicted) and (no_answer is None or no_answer <= self.threshold)
        self._confusion.add(ANSWERED[answerable], ANSWERED[answered_now])
        self._custom.add(predicted if answered_now else "", gold)
        if no_answer is not None:
            self._exact.append(int(exact))
            self._f1.append(words)
            self._no_answer.append(no_answer)
            self._flags.append(answerable + 2 * bool(predicted))
            if no_answer > self.threshold:
                exact = words = float(not answerable)
        self._replicates.add((exact, words, 1, exact * answerable, words * answerable, answerable))

    def report(self) -> ClassificationReport:
        """Which questions were answered, with and without a gold answer; empty if all have one."""
        some_without = any(true == ANSWERED[False] for true, _ in self._confusion.cells)
        return self._confusion.report("question", ANSWERED[::-1]) if some_without else ClassificationReport("question")

    def best(self) -> dict[str, tuple[float, float]]:
        """The best score and its threshold, for `f1` and `exact`; needs no-answer scores."""
        parts, no_answer, answerable, answered = self._no_answer_arrays()
        below = float(np.nextafter(no_answer.min(), -np.inf))
        return {name: best_threshold(part, no_answer, answerable, answered, none=below) for name, part in parts.items()}

    def _no_answer_arrays(self) -> tuple[dict[str, NDArray[Any]], NDArray[Any], NDArray[Any], NDArray[Any]]:
        require_rows(len(self._flags))
        flags, parts = np.array(self._flags), {"f1": np.array(self._f1), "exact": np.array(self._exact, np.float64)}
        return parts, np.array(self._no_answer), flags % 2 == 1, flags >= 2

    def keep_rows(self) -> None:
        self._replicates.keep_rows()
        self._custom.keep_rows()

    def row_table(self) -> RowTable:
        scores = {"f1": RowScore((1, 2)), "exact": RowScore((0, 2))}
        _, _, rows, _, _, answerable = self._replicates.totals()
        if 0 < answerable < rows:
            scores |= {"has_answer_f1": RowScore((4, 5)), "has_answer_exact": RowScore((3, 5))}
        return joined([RowTable(self._replicates.all_rows(), scores), *self._custom.row_tables()])

    def scores(self) -> dict[str, Score]:
        require_rows(self.rows)
        exact, _, rows, exact_there, _, there = self._replicates.totals()
        scores = self._replicates.scores(f1=lambda sums: mean(sums[1:3])) | {"exact": wilson(exact, rows)}
        if there and there < rows:
            scores |= self._replicates.scores(has_answer_f1=lambda sums: mean(sums[4:6]))
            scores |= {"has_answer_exact": wilson(exact_there, there)}
        if there < rows:
            scores |= {"no_answer_exact": wilson(exact - exact_there, rows - there)}
        if self._flags:
            scores |= self._best_scores()
        return scores | self._custom.scores()

    def _best_scores(self) -> dict[str, Score]:
        parts, no_answer, answerable, _ = self._no_answer_arrays()
        best = self.best()
        applied = {name: np.where(no_answer > best[name][1], ~answerable, part) for name, part in parts.items()}
        spread = {"f1": bootstrap(applied["f1"], seed=self._seed), "exact": wilson(applied["exact"].sum(), self.rows)}
        return {f"best_{name}": interval(best[name][0], [scores.low, scores.high]) for name, scores in spread.items()}
