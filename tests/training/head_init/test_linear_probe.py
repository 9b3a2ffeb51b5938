"""The linear probe against scikit-learn, and as the head of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from regard.checkpoint.source import from_preset
from regard.data.batching.examples import ExamplesBuilder
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import ClassifyRecord
from regard.tasks.classify import Classify
from regard.text.learn import train_tokenizer_from_texts
from regard.training.head_init.linear_probe import STRENGTH, fit_probe, pooled_vectors, probe_rows, start_from_probe

RNG = np.random.default_rng(0)


def unit_vectors(rows: int, width: int) -> np.ndarray:
    vectors = RNG.normal(size=(rows, width))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_one_label_is_logistic_regression() -> None:
    x = unit_vectors(60, 5)
    y = np.argmax(x[:, :3] + 0.3 * RNG.normal(size=(60, 3)), axis=1)
    theirs = LogisticRegression(C=STRENGTH, max_iter=5000, tol=1e-10).fit(x, y)
    task = Classify(names=("a", "b", "c"))
    weight, bias = fit_probe(task, torch.tensor(x), torch.tensor(y), torch.ones(60).double())
    ours = torch.tensor(x).float() @ weight.T + bias
    assert np.allclose(ours.softmax(1).numpy(), theirs.predict_proba(x), atol=1e-4)


def test_class_weights_are_those_of_the_task() -> None:
    """Two rows of weights of opposite sign are penalized half as much as one that is twice as long."""
    x = unit_vectors(60, 5)
    y = (x[:, 0] > 0.4).astype(int)
    y[0], y[1] = 0, 1
    theirs = LogisticRegression(C=2 * STRENGTH, class_weight={0: 0.5, 1: 3.0}, max_iter=5000, tol=1e-10).fit(x, y)
    task = Classify(names=("a", "b"), weights=(0.5, 3.0))
    weight, bias = fit_probe(task, torch.tensor(x), torch.tensor(y), torch.ones(60).double())
    ours = (torch.tensor(x).float() @ weight.T + bias).softmax(1).numpy()
    assert np.allclose(ours, theirs.predict_proba(x), atol=1e-4)


def test_several_labels_are_one_regression_each() -> None:
    x = unit_vectors(60, 5)
    y = (x[:, :2] > 0).astype(float)
    task = Classify(kind="multi", names=("a", "b"))
    weight, bias = fit_probe(task, torch.tensor(x), torch.tensor(y), torch.ones(60).double())
    ours = (torch.tensor(x).float() @ weight.T + bias).sigmoid().numpy()
    for label in range(2):
        theirs = LogisticRegression(C=STRENGTH, max_iter=5000, tol=1e-10).fit(x, y[:, label])
        assert np.allclose(ours[:, label], theirs.predict_proba(x)[:, 1], atol=1e-4)


def test_numbers_are_ridge_regression() -> None:
    x = unit_vectors(40, 5)
    y = x @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 7
    task = Classify(kind="number")
    weight, bias = fit_probe(task, torch.tensor(x), torch.tensor(y), torch.ones(40).double())
    theirs = Ridge(alpha=1 / STRENGTH).fit(x, y)
    assert np.allclose((torch.tensor(x).float() @ weight.T + bias)[:, 0].numpy(), theirs.predict(x), atol=1e-5)


def test_weights_count_a_row_several_times() -> None:
    x = unit_vectors(20, 4)
    y = (x[:, 0] > 0).astype(int)
    task = Classify(names=("a", "b"))
    twice = fit_probe(task, torch.tensor(np.vstack([x, x[:5]])), torch.tensor([*y, *y[:5]]), torch.ones(25).double())
    weights = torch.ones(20).double()
    weights[:5] = 2
    once = fit_probe(task, torch.tensor(x), torch.tensor(y), weights)
    assert torch.allclose(once[0], twice[0], atol=1e-3)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_the_scale_of_the_vectors_does_not_matter(scale: float) -> None:
    x = torch.tensor(unit_vectors(30, 4))
    y = (x[:, 0] > 0).long()
    task = Classify(names=("a", "b"))
    weight, bias = fit_probe(task, x, y, torch.ones(30).double())
    scaled_weight, scaled_bias = fit_probe(task, scale * x, y, torch.ones(30).double())
    assert torch.allclose(weight, scale * scaled_weight, atol=1e-3)
    assert torch.allclose(bias, scaled_bias, atol=1e-3)


def test_the_head_of_the_network_is_the_probe() -> None:
    """The logits of the network are those of the regression on its pooled vectors."""
    labels_by_word = {"cold": "a", "warm": "b"}
    records = [
        ClassifyRecord(f"{word} water {number}", label=label)
        for number in range(6)
        for word, label in labels_by_word.items()
    ]
    words = train_tokenizer_from_texts([record.text for record in records], kind="wordpiece", size=38)
    task = Classify.from_records(records)
    checkpoint = from_preset("bert-tiny", heads=task.heads, vocabulary=words.size)
    examples = task.examples(records, Preprocessing(words, checkpoint.config), labeled=True)
    network = checkpoint.network.train()
    assert start_from_probe(network, task, examples, seed=0) == 12
    assert network.training
    vectors, labels, weights = pooled_vectors(network, task, examples, list(range(12)))
    weight, bias = fit_probe(task, vectors, labels, weights)
    head: Any = network.get_submodule("heads.sequence.output")
    assert torch.allclose(head.weight, weight, atol=1e-4)
    assert torch.allclose(head.bias, bias, atol=1e-4)
    predicted = (vectors.float() @ weight.T + bias).argmax(1)
    assert (predicted == labels).all()


def test_a_sample_of_many_rows_has_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.head_init.linear_probe.MAX_ROWS", 20)
    builder = ExamplesBuilder()
    for row in range(400):
        builder.add(row, [1, 2], by_sequence={"label": 1 if row in (7, 300) else 0})
    rows = probe_rows(Classify(names=("common", "rare")), builder.build(), seed=0).tolist()
    assert {7, 300} <= set(rows)
    assert 20 <= len(rows) == len(set(rows)) <= 20 + 2


def test_few_rows_are_all_used() -> None:
    builder = ExamplesBuilder()
    for row in range(9):
        builder.add(row, [1, 2], by_sequence={"label": row % 2})
    assert probe_rows(Classify(names=("a", "b")), builder.build(), seed=0).tolist() == list(range(9))
