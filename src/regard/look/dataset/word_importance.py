"""Right for the wrong reason: the words that a classifier relies on, over a data set.

A word that the model relies on and that should not matter (a name, a number, a film title) is a shortcut. For each
class, the words with the highest mean contribution are listed, with how often they occur in texts of the class, and
with the accuracy of the model when they are erased from every text. Pairs of texts that differ in one such word show
what it does to an answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.data.sources.locate import DataLocation
from regard.errors import InputError, setting
from regard.look.dataset.items import DataItem, read_items
from regard.look.explain.explain import default_method, explain_scorer, make_scorer
from regard.look.explain.explanation import Explanation
from regard.look.explain.methods import find_method
from regard.look.explain.methods.method import MethodOptions
from regard.look.explain.scorer import Erased, Scorer
from regard.metrics.confidence import Score, wilson
from regard.predict import Model
from regard.progress import OnProgress, Progress

PAIRS = 3  # examples for each word


@dataclass(frozen=True)
class WordExample:
    """A text with a word, and the same text without it."""

    text: str
    without: str
    probability: float  # of the class, with the word
    probability_without: float


@dataclass(frozen=True)
class ImportantWord:
    """A word with its mean contribution to a class."""

    word: str
    score: float  # mean contribution, over the texts that are predicted as the class and have the word
    texts: int  # how many these are
    share: float | None  # fraction of all texts with this word that are labeled with the class; None without labels
    examples: tuple[WordExample, ...]


@dataclass(frozen=True)
class ClassWords:
    """The words that speak most for a class, and the accuracy on texts of the class with and without them."""

    label: str
    texts: int  # texts that are predicted as the class
    words: tuple[ImportantWord, ...]
    accuracy: Score | None  # of the texts that have one of the words; None without labels
    accuracy_without: Score | None  # of the same texts with these words erased


@dataclass(frozen=True)
class WordImportance:
    """The words that a classifier relies on, by class."""

    method: str
    texts: int
    erased_by: str
    classes: tuple[ClassWords, ...]

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Row:
    item: DataItem
    scorer: Scorer
    explanation: Explanation


def word_importance(
    model: Model,
    data: DataLocation | Sequence[str],
    *,
    method: str | None = None,
    top: int = 10,
    min_texts: int = 3,
    max_rows: int | None = 400,
    progress: OnProgress | None = None,
    **reading: Any,
) -> WordImportance:
    """The most important words of each class over the texts of a data set.

    top: words for each class.
    min_texts: texts that must have a word; a smaller data set needs fewer.
    max_rows: texts that are read, a random sample; all if None.
    reading: how the data is read, as of `regard.evaluate`: split, format, columns, encoding.
    """
    if top < 1 or min_texts < 1:
        raise InputError(f"{setting('top')} is {top} and min_texts is {min_texts}; both must be at least 1.")
    chosen = find_method(default_method(model) if method is None else method, model.network)
    items = read_items(model, data, max_rows=max_rows, **reading)
    rows: list[_Row] = []
    for number, item in enumerate(items, start=1):
        scorer = make_scorer(model, item.text, item.pair)
        if scorer.target.info.kind != "class":
            raise InputError("important words are listed by class; this model predicts no classes of texts.")
        rows.append(_Row(item, scorer, explain_scorer(scorer, chosen, MethodOptions())))
        if progress is not None:
            progress(Progress("texts", number, len(items)))
    by_label: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_label[row.explanation.target.label].append(row)
    shares = _label_shares(rows)
    names = model.labels or ()
    classes = [_class_words(label, by_label[label], shares, names, top, min_texts) for label in sorted(by_label)]
    return WordImportance(chosen.name, len(rows), rows[0].scorer.erased_by, tuple(classes))


def _label_shares(rows: Sequence[_Row]) -> dict[str, dict[str, int]]:
    """How many texts of each label have a word."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row.item.label is not None:
            for word in {one.text.lower() for one in row.explanation.words}:
                counts[word][row.item.label] += 1
    return counts


def _class_words(
    label: str,
    rows: Sequence[_Row],
    shares: dict[str, dict[str, int]],
    names: Sequence[str],
    top: int,
    min_texts: int,
) -> ClassWords:
    scores: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        own: dict[str, list[float]] = defaultdict(list)
        for word in row.explanation.words:
            own[word.text.lower()].append(word.score)
        for name, values in own.items():
            scores[name].append(sum(values))
            texts[name].append(row)
    often = [name for name in scores if len(scores[name]) >= min_texts and any(map(str.isalnum, name))]
    means = {name: float(np.mean(scores[name])) for name in often}
    best = sorted((name for name in often if means[name] > 0), key=lambda name: -means[name])[:top]
    words = tuple(
        ImportantWord(
            name,
            means[name],
            len(scores[name]),
            _share(shares.get(name, {}), label),
            tuple(_example(row, name) for row in texts[name][:PAIRS]),
        )
        for name in best
    )
    accuracy, without = _accuracies(rows, set(best), names)
    return ClassWords(label, len(rows), words, accuracy, without)


def _share(counts: dict[str, int], label: str) -> float | None:
    total = sum(counts.values())
    return counts.get(label, 0) / total if total else None


def _mask(row: _Row, words: set[str]) -> Erased:
    """(1, T) the tokens of these words."""
    numbers = [number for number, word in enumerate(row.explanation.words) if word.text.lower() in words]
    return np.array([row.scorer.word_masks(numbers).any(0)], np.bool_)


def _example(row: _Row, word: str) -> WordExample:
    masks = np.concatenate((row.scorer.nothing_erased, _mask(row, {word})))
    before, after = row.scorer.erased_probabilities(masks).tolist()
    text = row.item.text
    for one in reversed(row.explanation.words):
        if one.sequence == 0 and one.text.lower() == word:
            text = text[: one.start] + "…" + text[one.end :]
    return WordExample(row.item.text, text, before, after)


def _accuracies(rows: Sequence[_Row], words: set[str], names: Sequence[str]) -> tuple[Score | None, Score | None]:
    """The accuracy of the texts that have one of the words, as they are and with these words erased."""
    concerned = [
        row
        for row in rows
        if row.item.label is not None and any(word.text.lower() in words for word in row.explanation.words)
    ]
    if not concerned:
        return None, None
    right = right_without = 0
    for row in concerned:
        values_1C = row.scorer.erased_values(_mask(row, words))
        right += row.explanation.target.label == row.item.label
        right_without += names[int(values_1C[0].argmax())] == row.item.label
    return wilson(right, len(concerned)), wilson(right_without, len(concerned))
