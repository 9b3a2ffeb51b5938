"""The registry of metrics: what every score means, and the one place where a new metric is added.

A metric of your own is one function and one entry. There are two ways.

`score` is a function of what was predicted for a record and its gold value; its mean over the rows is reported:

    def within_one(predicted: float, gold: float) -> float:
        return float(abs(predicted - gold) <= 1)

    register_metric(Metric("within_one", "number", "fraction of numbers at most 1 away", score=within_one))

`from_counts` is for scores that are not a mean over rows, such as F1 or balanced accuracy. It is a function of the
`LabelCounts` of the whole data set: arrays with how often each label was hit, predicted and true. Labels are the last
axis; for the interval there is an axis of bootstrap replicates before it, so sum over axis -1. `ratio` of
`regard.metrics.scores` divides without warnings about 0:

    def balanced_accuracy(counts: LabelCounts) -> Any:
        present = counts.gold > 0
        return ratio((counts.recall * present).sum(-1), present.sum(-1))

    register_metric(Metric("balanced_accuracy", "label", "mean recall of the labels", from_counts=balanced_accuracy))

A metric is computed, with its 95 % interval, wherever predictions of that kind are scored: in evaluation, during and
after training, in the model card, and in the table of the documentation. `from_counts` takes the kinds `label` and
`labels`. The kinds of predictions, and what `score` receives:

| kind | predicted | gold |
|---|---|---|
| `label` | label | label |
| `labels` | list of labels | list of labels |
| `number` | number | number |
| `entities`, `tags` | tag of every word | tag of every word |
| `answer` | text, empty for no answer | list of texts, empty for no answer |
| `translation` | text | text |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import InputError
from regard.metrics.confidence import Replicates, Score, mean
from regard.metrics.paired.rows import NO_LIMITS, RowScore, RowTable
from regard.metrics.scores import LabelCounts

COUNT_KINDS = ("label", "labels")  # of metrics from counts
CUSTOM_KINDS = ("label", "labels", "number", "entities", "tags", "answer", "translation")
BUILT_IN_KINDS = (*CUSTOM_KINDS, "masked tokens", "next token", "both directions", "sentence pair")


@dataclass(frozen=True)
class Metric:
    """One score of one kind of prediction.

    score: function of (predicted, gold) of one record; the mean over records is reported.
    from_counts: function of the `LabelCounts` of all records: one number, or one for each bootstrap replicate.

    Built-in metrics have neither; their meters compute them.
    """

    name: str
    kind: str
    description: str
    score: Callable[[Any, Any], float] | None = None
    higher_is_better: bool = True
    from_counts: Callable[[LabelCounts], Any] | None = None

    def __post_init__(self) -> None:
        if self.score is not None and self.from_counts is not None:
            raise InputError(f'metric "{self.name}" has both score and from_counts. Give one of them.')
        kinds: tuple[str, ...] = BUILT_IN_KINDS if self.score is None else CUSTOM_KINDS
        if self.from_counts is not None:
            kinds = COUNT_KINDS
        if self.kind not in kinds:
            raise InputError(f'metric "{self.name}" has the kind "{self.kind}", expected one of: {", ".join(kinds)}.')


METRICS: list[Metric] = [
    Metric("accuracy", "label", "fraction of rows with the right label"),
    Metric("macro_f1", "label", "mean of the F1 of every label, each counted equally"),
    Metric("f1", "label", "with two labels: F1 of the last one"),
    Metric("mcc", "label", "with two labels: Matthews correlation, -1 to 1 (Matthews 1975)"),
    Metric("micro_f1", "labels", "F1 over all label decisions together"),
    Metric("macro_f1", "labels", "mean of the F1 of every label, each counted equally"),
    Metric("exact", "labels", "fraction of rows whose labels are all right"),
    Metric("pearson", "number", "linear correlation, -1 to 1"),
    Metric("spearman", "number", "rank correlation, -1 to 1 (Spearman 1904)"),
    Metric("mse", "number", "mean squared error", higher_is_better=False),
    Metric("mae", "number", "mean absolute error", higher_is_better=False),
    Metric("r2", "number", "fraction of the variance that is explained"),
    Metric("f1", "entities", "F1 of whole entities, as conlleval counts them (Tjong Kim Sang and De Meulder 2003)"),
    Metric("precision", "entities", "fraction of predicted entities that are right"),
    Metric("recall", "entities", "fraction of gold entities that are found"),
    Metric("f1_strict", "entities", "F1 of entities that start with a B- tag (strict IOB2, as in seqeval)"),
    Metric("accuracy", "tags", "fraction of words with the right tag"),
    Metric("f1", "answer", "overlap of the words of answer and gold answer (SQuAD; Rajpurkar et al. 2016)"),
    Metric("exact", "answer", "fraction of answers that equal a gold answer after normalization"),
    Metric("has_answer_f1", "answer", "F1 of the questions that have an answer (SQuAD 2.0)"),
    Metric("has_answer_exact", "answer", "exact match of the questions that have an answer"),
    Metric("no_answer_exact", "answer", "fraction of unanswerable questions that were left unanswered"),
    Metric("best_f1", "answer", "F1 with the best no-answer threshold for this data"),
    Metric("best_exact", "answer", "exact match with the best no-answer threshold for this data"),
    Metric("bleu", "translation", "n-gram precision with a brevity penalty, 0 to 100 (Papineni et al. 2002)"),
    Metric("chrf", "translation", "F-score of character n-grams, 0 to 100 (Popović 2015)"),
    Metric("bleu_lowercase", "translation", "BLEU of lower-cased texts, as published for Multi30k"),
    Metric("masked_accuracy", "masked tokens", "fraction of masked tokens that are predicted"),
    Metric("perplexity", "masked tokens", "exp of the mean loss of the masked tokens", higher_is_better=False),
    Metric("nll", "masked tokens", "mean negative log-likelihood of the masked tokens", higher_is_better=False),
    Metric("next_accuracy", "masked tokens", "fraction of sentence pairs classified correctly (next or not)"),
    Metric("perplexity", "next token", "exp of the mean loss of a token", higher_is_better=False),
    Metric("nll", "next token", "mean negative log-likelihood of a token", higher_is_better=False),
    Metric(
        "word_perplexity",
        "next token",
        "perplexity per word; comparable between models with different vocabularies",
        higher_is_better=False,
    ),
    Metric(
        "bits_per_character",
        "next token",
        "loss in bits per character; comparable between models with different vocabularies",
        higher_is_better=False,
    ),
    Metric("perplexity", "both directions", "perplexity of both directions together", higher_is_better=False),
    Metric("nll", "both directions", "mean negative log-likelihood of a token", higher_is_better=False),
    Metric("perplexity_ahead", "both directions", "perplexity from the left context", higher_is_better=False),
    Metric("perplexity_back", "both directions", "perplexity from the right context", higher_is_better=False),
    Metric("accuracy", "sentence pair", "fraction of pairs whose correct sentence is the more likely one"),
]


def register_metric(metric: Metric) -> None:
    """Add a metric; from now on every new scoring of its kind of predictions computes it.

    Raises an error where the name is taken for this kind, or the metric has no function.
    """
    if metric.score is None and metric.from_counts is None:
        raise InputError(
            f'metric "{metric.name}" has no function. Give score, a function of (predicted, gold) of one record, '
            "or from_counts, a function of the LabelCounts of all records."
        )
    if any((metric.name, metric.kind) == (other.name, other.kind) for other in METRICS):
        raise InputError(f'a metric "{metric.name}" for the kind "{metric.kind}" exists already. Choose another name.')
    METRICS.append(metric)


def unregister_metric(metric: Metric) -> None:
    """Remove a metric that was added with `register_metric`."""
    METRICS.remove(metric)


def metric_table() -> str:
    """All metrics as a Markdown table, for the documentation."""
    lines = ["| predictions | score | meaning | better |", "|---|---|---|---|"]
    for metric in METRICS:
        better = "higher" if metric.higher_is_better else "lower"
        lines.append(f"| {metric.kind} | `{metric.name}` | {metric.description} | {better} |")
    return "\n".join(lines)


def count_metrics(kind: str) -> dict[str, Callable[[LabelCounts], Any]]:
    """The functions of the registered metrics that are computed from counts, by name; they check what is returned."""
    return {metric.name: _checked(metric) for metric in METRICS if metric.kind == kind and metric.from_counts}


def _checked(metric: Metric) -> Callable[[LabelCounts], Any]:
    def from_counts(counts: LabelCounts) -> Any:
        assert metric.from_counts is not None
        result = np.asarray(metric.from_counts(counts), np.float64)
        expected = counts.gold.shape[:-1]
        if result.shape != expected:
            raise InputError(
                f'metric "{metric.name}" returned numbers of shape {result.shape} for counts of shape '
                f"{counts.gold.shape}; expected shape {expected}. Sum over the last axis alone, as in .sum(-1)."
            )
        if not expected and not np.isfinite(result):
            raise InputError(f'metric "{metric.name}" returned {result} for {counts}; expected a finite number.')
        return result

    return from_counts


class CustomScores:
    """The registered metrics of one kind with a `score`, accumulated record by record; no cost without any."""

    def __init__(self, kind: str, *, seed: int = 0) -> None:
        self.metrics = [metric for metric in METRICS if metric.kind == kind and metric.score is not None]
        self._sums = {metric.name: Replicates(2, seed=seed) for metric in self.metrics}

    def __bool__(self) -> bool:
        return bool(self.metrics)

    def add(self, predicted: Any, gold: Any) -> None:
        """Score one record with every metric."""
        for metric in self.metrics:
            assert metric.score is not None
            value = float(metric.score(predicted, gold))
            if not math.isfinite(value):
                raise InputError(
                    f'metric "{metric.name}" returned {value} for {predicted!r} and {gold!r}; expected a finite number.'
                )
            self._sums[metric.name].add((value, 1.0))

    def keep_rows(self) -> None:
        """Keep the value of every row that is added from now on."""
        for sums in self._sums.values():
            sums.keep_rows()

    def row_tables(self) -> list[RowTable]:
        """One for each metric."""
        better = {metric.name: metric.higher_is_better for metric in self.metrics}
        return [
            RowTable(sums.all_rows(), {name: RowScore((0, 1), higher_is_better=better[name], limits=NO_LIMITS)})
            for name, sums in self._sums.items()
        ]

    def scores(self) -> dict[str, Score]:
        """The mean of each metric with its interval."""
        return {name: sums.scores(**{name: mean})[name] for name, sums in self._sums.items() if sums.rows}
