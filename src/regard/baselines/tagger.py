"""The baseline `ngram` for tags: logistic regression on features of each word and of its neighbors.

Features are the word itself, in lower case, its shape, prefixes and suffixes, and the same of the two words on each
side. The most likely possible sequence of tags is then the answer, as for every tagging model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.baselines.linear import ITERATIONS, LinearProblem, SparseRows, fit_linear
from regard.baselines.ngram import Report
from regard.checkpoint.folder import Checkpoint
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.config import BagConfig
from regard.data.batching.examples import Examples
from regard.data.records import Record
from regard.errors import InputError
from regard.model.bag import BagNetwork
from regard.tasks.tag import Tag
from regard.text.features.words import FEATURES, WordFeatures
from regard.text.tokenizer import Tokenizer

NEIGHBORS = 2  # words on each side
STRENGTH = 1.0  # inverse of the L2 penalty, C of scikit-learn
MANY_ROWS = 1000  # from which features that occur once are left out


def build_tagger(task: Tag, records: Sequence[Record]) -> tuple[Checkpoint, Tokenizer]:
    """The features of the words of these texts, and a network for them whose weights are zero."""
    texts = [text for record in records for _, text in record.texts]
    backend = WordFeatures.learn(texts, min_count=2 if len(records) >= MANY_ROWS else 1)
    if not backend.names:
        raise InputError("the training texts have no words. Give texts with words.")
    places = 2 * NEIGHBORS + 1
    config = BagConfig(
        vocabulary=backend.size,
        width=places * len(task.names),
        neighbors=NEIGHBORS,
        word_features=FEATURES,
    )
    network = build_on_meta(config, task.heads)
    set_tensors(network, {name: torch.zeros(value.shape) for name, value in network.named_parameters()})
    return Checkpoint("ngram", config, network.eval()), Tokenizer(backend)


def fit_tagger(network: BagNetwork, task: Tag, examples: Examples, *, seed: int, report: Report) -> None:
    """Fit the weights to the examples and put them into the network."""
    rows, targets = window_rows(examples, network.config.vocabulary)
    weights = None if task.weights is None else torch.tensor(task.weights)
    problem = LinearProblem(rows, targets, "softmax", len(task.names), class_weights=weights)
    fit = fit_linear(problem, STRENGTH, tolerance=1e-3, on_iteration=lambda done: report("fitting", done, ITERATIONS))
    places, vocabulary = 2 * NEIGHBORS + 1, network.config.vocabulary
    table = fit.weights.view(places, vocabulary, -1).transpose(0, 1).reshape(vocabulary, -1)
    output: Any = network.heads["token"].output
    with torch.no_grad():
        network.encoder.tokens.weight.copy_(table)
        output.weight.copy_(torch.eye(len(task.names)))
        output.bias.copy_(fit.bias)


def window_rows(examples: Examples, vocabulary: int) -> tuple[SparseRows, torch.Tensor]:
    """A row for each word with a tag: its features and those of its neighbors, which have columns of their own."""
    ids = examples.ids.reshape(-1, FEATURES).astype(np.int64)
    label = np.asarray(examples.by_token["label"]).reshape(-1, FEATURES)[:, 0]
    text = np.repeat(np.arange(len(examples.bounds) - 1), np.diff(examples.bounds) // FEATURES)
    count = len(ids)
    parts, masks = [], []
    for place in range(2 * NEIGHBORS + 1):
        at = np.arange(count) + place - NEIGHBORS
        inside = (at >= 0) & (at < count)
        at = np.clip(at, 0, count - 1)
        inside &= text[at] == text
        parts.append(ids[at] + place * vocabulary)
        masks.append(np.broadcast_to(inside[:, None], (count, FEATURES)))
    tagged = label >= 0
    columns = np.concatenate(parts, axis=1)[tagged]
    mask = np.concatenate(masks, axis=1)[tagged]
    bounds = np.concatenate(([0], np.cumsum(mask.sum(1))))
    flat = torch.from_numpy(columns[mask])
    width = (2 * NEIGHBORS + 1) * vocabulary
    rows = SparseRows(flat, torch.from_numpy(bounds), torch.ones(len(flat)), width)
    return rows, torch.from_numpy(label[tagged].astype(np.int64))
