"""The baseline `ngram`: which word and character n-grams a text has, weighted by tf-idf, and a linear model.

How it works:

1. A text is the set of its words, pairs of words, and sequences of 2 to 5 characters inside words.
2. Each counts by its inverse document frequency; word and character n-grams have length 1 each (L2 norm).
3. Logistic regression (ridge regression for numbers) with an L2 penalty. The penalty is small for n-grams that are much
   more frequent in one class than in the others (NB-SVM, Wang and Manning 2012, https://aclanthology.org/P12-2018).
4. The strength of the penalty is chosen on a tenth of the training rows; the weights are then fitted on all of them.

For a pair of texts, n-grams of the first text, of the second and of both have weights of their own, and so does the
cosine of the two texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.baselines.linear import ITERATIONS, LinearFit, LinearProblem, SparseRows, fit_linear
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.config import BagConfig
from regard.data.batching.examples import TEACHER, Examples
from regard.data.records import Record
from regard.errors import InputError
from regard.model.bag import BagNetwork
from regard.tasks.classify import Classify
from regard.text.features.ngrams import NgramCounter, NgramRanges
from regard.text.tokenizer import Tokenizer

MANY_ROWS = 1000  # from which n-grams of one text only are left out
LIMIT = 1 << 20  # word n-grams, and as many character n-grams
TEXTS_AT_ONCE = 2000
STRENGTHS = (8.0, 32.0, 128.0, 512.0)  # C of scikit-learn
FEW_ROWS = 100  # up to which the strength is not chosen by a held-out part
DEFAULT_STRENGTH = 8.0
HELD_OUT = 0.1
MAX_HELD_OUT = 4000
SMOOTHING = 1.0  # texts of each class that have each n-gram, besides those of the data
MIN_SCALE = 0.05
NEARLY = 1.03

Report = Callable[[str, int, int], None]  # what is done, how much of it, and of how much


def build_ngram(task: Classify, records: Sequence[Record], report: Report) -> tuple[Checkpoint, Tokenizer]:
    """The vocabulary of n-grams of these texts, and a network for it whose weights are zero."""
    counter = NgramCounter(NgramRanges())
    texts = iter(text for record in records for _, text in record.texts)
    while part := list(islice(texts, TEXTS_AT_ONCE)):
        counter.add(part)
        report("reading n-grams", min(counter.texts, len(records)), len(records))
    backend, counts = counter.vocabulary(min_texts=2 if counter.texts >= MANY_ROWS else 1, limit=LIMIT)
    if backend.size == 1:
        raise InputError(
            "the training texts have no n-grams: all of them are empty, or no two share one. Give texts with words."
        )
    pair = task.record.type_name == "pair"
    config = BagConfig(
        vocabulary=backend.size,
        width=columns_of(task),
        weighting="tfidf",
        word_rows=len(backend.words),
        pair=pair,
    )
    idf = np.log((1 + counter.texts) / (1 + counts)) + 1  # as TfidfVectorizer of scikit-learn
    idf[0] = 0.0  # token 0 is in every text
    return Checkpoint("ngram", config, zero_network(config, task, torch.from_numpy(idf).float())), Tokenizer(backend)


def columns_of(task: Classify) -> int:
    """Numbers per n-gram: one for two classes and for numbers, else one per class."""
    classes = len(task.names)
    return 1 if task.kind == "number" or (task.kind == "single" and classes == 2) else classes


def zero_network(config: BagConfig, task: Classify, idf: Tensor) -> BagNetwork:
    network = build_on_meta(config, task.heads)
    assert isinstance(network, BagNetwork)
    values = {name: torch.zeros(parameter.shape) for name, parameter in network.named_parameters()}
    set_tensors(network, {**values, "encoder.idf": idf})
    return network.eval()


def fit_ngram(network: BagNetwork, task: Classify, examples: Examples, *, seed: int, report: Report) -> float:
    """Fit the weights to the examples and put them into the network. Returns the strength that was chosen."""
    problem = linear_problem(network, task, examples)
    strength = choose_strength(problem, seed=seed, report=report)
    fit = fit_linear(problem, strength, on_iteration=lambda done: report("fitting", done, ITERATIONS))
    set_weights(network, task, fit)
    return strength


@torch.no_grad()
def linear_problem(network: BagNetwork, task: Classify, examples: Examples) -> LinearProblem:
    """The features of the examples as a sparse matrix, with their targets."""
    rows = _sparse_rows(network, examples)
    labels = torch.from_numpy(np.asarray(examples.by_sequence["label"]))
    columns = network.config.width
    if task.kind == "number":
        return LinearProblem(rows, labels.to(rows.values)[:, None], "squares", 1)
    weights = None if task.weights is None else torch.tensor(task.weights, dtype=rows.values.dtype)
    if TEACHER in examples.by_sequence and task.kind == "single":
        return _soft_problem(rows, torch.from_numpy(examples.by_sequence[TEACHER]).to(rows.values).exp(), columns)
    if task.kind == "single" and columns > 1:
        classes = torch.nn.functional.one_hot(labels, columns).to(rows.values)
        return LinearProblem(rows, labels, "softmax", columns, naive_bayes_scale(rows, classes), weights)
    targets = labels.to(rows.values).view(len(rows), -1)
    if task.kind == "single" and weights is not None:  # weights of both classes as one of the second
        weights = weights[1:] / weights[:1]
    return LinearProblem(rows, targets, "logistic", columns, naive_bayes_scale(rows, targets), weights)


def _soft_problem(rows: SparseRows, chances_NC: Tensor, columns: int) -> LinearProblem:
    """The probabilities of a teacher as targets."""
    if columns > 1:
        return LinearProblem(rows, chances_NC, "softmax", columns, naive_bayes_scale(rows, chances_NC))
    second_N1 = chances_NC[:, 1:]
    return LinearProblem(rows, second_N1, "logistic", columns, naive_bayes_scale(rows, second_N1))


def _sparse_rows(network: BagNetwork, examples: Examples) -> SparseRows:
    """The weights of features as the network computes them, for a few thousand examples at once."""
    encoder, config = network.encoder, network.config
    columns, values, lengths, similar = [], [], [], []
    for start in range(0, len(examples), TEXTS_AT_ONCE):
        batch = examples.take(range(start, min(start + TEXTS_AT_ONCE, len(examples)))).tokens
        row, weight = encoder.tfidf_rows(batch)
        columns.append(row)
        values.append(weight)
        lengths.append(batch.lengths)
        if config.pair:
            similar.append(encoder.similarities(batch, weight))
    bounds = torch.cat((torch.zeros(1, dtype=torch.int64), torch.cat(lengths).long().cumsum(0)))
    width = len(encoder.tokens.weight)
    plain = SparseRows(torch.cat(columns), bounds, torch.cat(values), width)
    return _with_dense(plain, torch.cat(similar)) if config.pair else plain


def _with_dense(rows: SparseRows, dense_NS: Tensor) -> SparseRows:
    """The matrix with a few more columns at its end."""
    count, extra = len(rows), dense_NS.shape[1]
    own = torch.repeat_interleave(torch.arange(count), rows.bounds.diff())
    order = torch.argsort(torch.cat((own, torch.arange(count).repeat_interleave(extra))), stable=True)
    columns = torch.cat((rows.columns, torch.arange(rows.width, rows.width + extra).repeat(count)))
    values = torch.cat((rows.values, dense_NS.flatten().to(rows.values)))
    bounds = rows.bounds + torch.arange(count + 1) * extra
    return SparseRows(columns[order], bounds, values[order], rows.width + extra)


def naive_bayes_scale(rows: SparseRows, targets_NC: Tensor) -> Tensor:
    """(V, C) how much more frequent a feature is with a class than without it: the root of the log-ratio."""
    presence = SparseRows(rows.columns, rows.bounds, torch.ones_like(rows.values), rows.width)
    with_VC = presence.transposed.times(targets_NC) + SMOOTHING
    without_VC = presence.transposed.times(1 - targets_NC) + SMOOTHING
    ratio_VC = (with_VC / with_VC.sum(0)).log() - (without_VC / without_VC.sum(0)).log()
    return ratio_VC.abs().sqrt().clamp(min=MIN_SCALE)


def choose_strength(problem: LinearProblem, *, seed: int, report: Report) -> float:
    """The largest strength whose loss on a held-out part of the rows is nearly the lowest.

    With larger strengths, answers are a little too certain, but more of them are right.
    """
    count = len(problem.rows)
    if count < FEW_ROWS:
        return DEFAULT_STRENGTH
    order = np.random.default_rng(seed).permutation(count)
    size = min(int(count * HELD_OUT), MAX_HELD_OUT)
    test, part = problem.take(order[:size]), problem.take(order[size:])
    best, lowest = DEFAULT_STRENGTH, float("inf")
    fit: LinearFit | None = None
    for number, strength in enumerate(STRENGTHS):
        name = f"choosing the penalty, {number + 1} of at most {len(STRENGTHS)}"
        on_iteration = partial(_report_iteration, report, name)
        fit = fit_linear(part, strength, start=fit, tolerance=1e-3, on_iteration=on_iteration)
        loss = float(test.loss(test.scores(fit)))
        lowest = min(lowest, loss)
        if loss > NEARLY * lowest:
            break
        best = strength
    return best


def _report_iteration(report: Report, name: str, done: int) -> None:
    report(name, done, ITERATIONS)


@torch.no_grad()
def set_weights(network: BagNetwork, task: Classify, fit: LinearFit) -> None:
    """Put fitted weights into the table, and the bias into the classification head."""
    table = network.encoder.tokens.weight
    table.copy_(fit.weights[: len(table)])
    output: Any = network.heads["sequence"].output
    columns = table.shape[1]
    both = task.kind == "single" and columns == 1  # two classes: half of the difference for each
    sides = torch.tensor([[-0.5], [0.5]]) if both else torch.eye(columns)
    output.weight[:, :columns].copy_(sides)
    output.bias.copy_(sides @ fit.bias.to(sides))
    if network.config.pair:
        output.weight[:, columns:].copy_(sides @ fit.weights[len(table) :].to(sides).T)
