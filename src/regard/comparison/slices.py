"""Scores by slice: by the length of the texts, by label, or by a column of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.comparison.pairs import Tables
from regard.comparison.result import AnsweredRows, SliceResult
from regard.data.records import Record
from regard.data.rows import Row
from regard.errors import InputError, setting, shorten
from regard.metrics.confidence import wilson
from regard.metrics.paired.resample import bootstrap_scores, expanded_interval
from regard.metrics.paired.rows import RowTable

LENGTH, LABEL = "length", "label"
PARTS = 4  # bins of numbers
MANY_VALUES = 20  # of a column; the rest is one slice
RESAMPLES = 1000
OTHER = "other"


def slice_value(name: str, row: Row, record: Record) -> Any:
    """What a row is sliced by: a number of words, a label, or the value of a column."""
    if name == LENGTH:
        return sum(len(text.split()) for _, text in record.texts)
    if name in row.values:
        return row.values[name]
    if name == LABEL:
        return record.stratum
    known = ", ".join(shorten(str(column), 60) for column in row.values)
    raise InputError(
        f'{setting("slices")}: there is no column "{name}" in {row.place.file}. '
        f"Its columns: {known}. Or use {LENGTH} or {LABEL}."
    )


@dataclass(frozen=True)
class Slices:
    """The slice of every row, by what they are sliced by."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]  # for each name, one value per row


def divide(name: str, values: Sequence[Any]) -> tuple[str, ...]:
    """The slice of each row: numbers are divided into four parts of similar size, rare values are put together."""
    numbers = _numbers(values)
    if numbers is not None and len(set(values)) > PARTS:
        return _bins(numbers, "words" if name == LENGTH else "")
    texts = [_text(value) for value in values]
    frequent = {value for value, _ in Counter(texts).most_common(MANY_VALUES)}
    return tuple(value if value in frequent else OTHER for value in texts)


def _text(value: Any) -> str:
    text = str(value)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return None
    whole_names = not any(isinstance(value, int | float) for value in values) and len(set(values)) <= MANY_VALUES
    return None if whole_names or not np.isfinite(numbers).all() else numbers


def _bins(numbers: NDArray[np.float64], unit: str) -> tuple[str, ...]:
    """The name of the bin of each number, such as "5 to 9 words"."""
    edges = np.unique(np.quantile(numbers, np.arange(1, PARTS) / PARTS, method="higher"))
    places = np.searchsorted(edges, numbers, side="right")
    names = {}
    for place in np.unique(places):
        inside = numbers[places == place]
        low, high = f"{inside.min():g}", f"{inside.max():g}"
        names[place] = f"{low if low == high else f'{low} to {high}'} {unit}".strip()
    return tuple(names[place] for place in places)


def score_slices(
    tables: Tables,
    metric: str,
    slices: Slices,
    *,
    answered: Mapping[str, Sequence[bool]] | None = None,
    seed: int = 0,
) -> tuple[SliceResult, ...]:
    """The score of each model on each slice, with intervals; of the first two models also their difference.

    Spearman's correlation is replaced by Pearson's: its approximation holds for all rows together.
    answered: by model, whether it answers each row, if it abstains from some.
    """
    first = next(iter(tables.values()))[0]
    if not first.score(metric).swappable:
        metric = next(name for name, score in first.scores.items() if score.swappable)
    results = []
    for name, values in zip(slices.names, slices.values, strict=True):
        every = np.array(values, object)
        for value in _ordered(values):
            rows = np.flatnonzero(every == value)
            part = _slice(tables, metric, name, value, rows, seed)
            if answered is not None:
                part = replace(part, answered=_answered(tables, metric, answered, rows, seed))
            results.append(part)
    return tuple(results)


def _ordered(values: Sequence[str]) -> list[str]:
    """Distinct values: bins by their numbers, others by name."""

    def key(value: str) -> tuple[float, str]:
        start = value.split(" ")[0]
        try:
            return float(start), value
        except ValueError:
            return float("inf"), value

    return sorted(set(values), key=key)


def _slice(tables: Tables, metric: str, name: str, value: str, rows: NDArray[np.intp], seed: int) -> SliceResult:
    parts = [[RowTable(table.features[rows], table.scores) for table in of_model] for of_model in tables.values()]
    together = bootstrap_scores([table for part in parts for table in part], metric, resamples=RESAMPLES, seed=seed)
    ends = np.cumsum([len(part) for part in parts])
    sampled = [one.mean(0) for one in np.split(together, ends[:-1])]
    values = [float(np.mean([table.value(metric) for table in part])) for part in parts]
    scores = {
        model: expanded_interval(score, replicates, len(rows))
        for model, score, replicates in zip(tables, values, sampled, strict=True)
    }
    difference = None
    if len(parts) > 1:
        difference = expanded_interval(values[0] - values[1], sampled[0] - sampled[1], len(rows))
    return SliceResult(name, value, len(rows), metric, scores, difference)


def _answered(
    tables: Tables, metric: str, answered: Mapping[str, Sequence[bool]], rows: NDArray[np.intp], seed: int
) -> dict[str, AnsweredRows]:
    """How many rows of a slice each model answers, and its score on these."""
    results = {}
    for model, (table, *_) in tables.items():
        own = rows[np.array(answered[model], bool)[rows]]
        score = None
        if own.size:
            part = RowTable(table.features[own], table.scores)
            (sampled,) = bootstrap_scores([part], metric, resamples=RESAMPLES, seed=seed)
            score = expanded_interval(part.value(metric), sampled, len(own))
        results[model] = AnsweredRows(len(own), wilson(len(own), len(rows)), score)
    return results
