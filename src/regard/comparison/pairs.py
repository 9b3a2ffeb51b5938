"""All pairs of models: tests on the same rows, corrected for their number, with verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from regard.comparison.result import PairResult
from regard.comparison.words import better_sentence, cannot_tell_sentence, too_many_pairs_sentence
from regard.errors import pluralize
from regard.metrics.confidence import Score, wilson
from regard.metrics.paired.resample import RESAMPLES, bootstrap_scores, expanded_interval
from regard.metrics.paired.rows import RowTable
from regard.metrics.paired.significance import ALPHA, MIN_UNITS, PairTest, compare_pair, holm, seed_noise

Tables = Mapping[str, Sequence[RowTable]]  # by model: one table for each seed


@dataclass(frozen=True)
class ResampledModels:
    """The score of every model with its interval, and every pair. `reason` says why there is no verdict."""

    scores: dict[str, Score]
    pairs: tuple[PairResult, ...]
    units: int
    reason: str | None


def compare_tables(
    tables: Tables,
    metric: str,
    *,
    groups: NDArray[np.intp] | None = None,
    reason: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    varying: Collection[str] = (),
) -> ResampledModels:
    """Test all pairs of models on the same rows.

    groups: the number of each row's group; whole groups are resampled.
    reason: why there is no verdict, if that is known already.
    varying: models that were trained with one seed, and would be others with another seed.
    """
    flat = [table for of_model in tables.values() for table in of_model]
    sampled = bootstrap_scores(flat, metric, groups=groups, resamples=resamples, seed=seed)
    ends = np.cumsum([len(of_model) for of_model in tables.values()])
    by_model = dict(zip(tables, np.split(sampled, ends[:-1]), strict=True))
    units = flat[0].rows if groups is None else int(groups.max()) + 1
    reason = reason or too_few(units, flat[0].rows)
    names = list(combinations(tables, 2))
    tests = [
        compare_pair(
            tables[a],
            tables[b],
            metric,
            groups=groups,
            resamples=resamples,
            seed=seed,
            sampled=(by_model[a], by_model[b]),
            varying=(a in varying) + (b in varying),
        )
        for a, b in names
    ]
    corrected = holm([test.p for test in tests])
    pairs = tuple(
        _pair(a, b, metric, test, p_holm, len(tests), reason, higher=flat[0].score(metric).higher_is_better)
        for (a, b), test, p_holm in zip(names, tests, corrected, strict=True)
    )
    scores = {name: model_score(tables[name], metric, by_model[name], units, seed=seed) for name in tables}
    return ResampledModels(scores, pairs, units, reason)


def model_score(
    tables: Sequence[RowTable], metric: str, sampled: NDArray[np.float64], units: int, *, seed: int = 0
) -> Score:
    """The mean score over the seeds of a model; its interval is from the choice of rows and of seeds.

    Rows that are all right (or all wrong) would give an interval of one value: then it is Wilson's.
    """
    values = np.array([table.value(metric) for table in tables])
    noise, _ = seed_noise([values], resamples=sampled.shape[1], seed=seed)
    limits = tables[0].score(metric).limits
    score = expanded_interval(float(values.mean()), np.clip(sampled.mean(0) + noise, *limits), units)
    if score.low == score.high and limits == (0.0, 1.0):
        return wilson(score.value * units, units)
    return score


def too_few(units: int, rows: int) -> str | None:
    """Why so few rows, or groups of rows, allow no verdict; None if there are enough."""
    if units >= MIN_UNITS:
        return None
    if units == 1 and rows > 1:
        return f"all {rows:,} rows are of one group, so nothing says how much another group would differ"
    what = pluralize(units, "row") if units == rows else f"{pluralize(units, 'group')} of rows"
    return f"{what}, expected at least {MIN_UNITS}"


def _pair(
    a: str, b: str, metric: str, test: PairTest, p_holm: float, pairs: int, reason: str | None, *, higher: bool
) -> PairResult:
    difference = test.difference
    excludes_zero = difference.low > 0 or difference.high < 0
    better, needed = None, test.rows_needed(alpha=ALPHA / pairs)
    if reason is not None:
        verdict = f"no verdict on {a} and {b}: {reason}"
    elif p_holm <= ALPHA and excludes_zero:
        better = a if (difference.value > 0) == higher else b
        verdict = better_sentence(better, b if better == a else a, metric, difference)
    elif test.p <= ALPHA and excludes_zero:
        verdict = too_many_pairs_sentence(a, b, metric, difference, pairs, p_holm)
    else:
        verdict = cannot_tell_sentence(a, b, test.rows, needed, are_equal=difference.value == 0)
    return PairResult(
        a=a,
        b=b,
        metric=metric,
        difference=difference.value,
        low=difference.low,
        high=difference.high,
        p=test.p,
        p_holm=p_holm,
        p_bootstrap=test.p_bootstrap,
        p_randomization=test.p_randomization,
        p_mcnemar=test.p_mcnemar,
        rows_needed=needed,
        better=better,
        verdict=verdict,
    )
