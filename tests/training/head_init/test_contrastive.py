"""Contrastive training: its loss against a plain loop, its batches, and what it does to vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from regard.checkpoint.source import from_preset
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import ClassifyRecord
from regard.tasks.classify import Classify
from regard.text.learn import train_tokenizer_from_texts
from regard.training.defaults.recipes import ContrastiveTraining
from regard.training.head_init.contrastive import pair_loss, sample_batch, train_contrastive
from regard.training.head_init.linear_probe import pooled_vectors


def test_the_loss_is_that_of_a_plain_loop() -> None:
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 0, 2, 1, 0, 2])
    same, different = [], []
    for i in range(7):
        for j in range(7):
            cosine = F.cosine_similarity(vectors[i], vectors[j], dim=0)
            if i != j and labels[i] == labels[j]:
                same.append((1 - cosine) ** 2)
            elif i != j:
                different.append(cosine**2)
    expected = (torch.stack(same).mean() + torch.stack(different).mean()) / 2
    assert torch.allclose(pair_loss(vectors, labels), expected, atol=1e-6)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_a_batch_may_have_pairs_of_one_kind_only(labels: list[int]) -> None:
    assert torch.isfinite(pair_loss(torch.randn(3, 4), torch.tensor(labels)))


@pytest.mark.parametrize(("classes", "expected"), [(2, 16), (4, 8), (10, 3)])
def test_batches_have_equally_many_rows_of_each_class(classes: int, expected: int) -> None:
    labels = np.repeat(np.arange(classes), 40)
    rows = sample_batch(labels, 32, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist()))
    assert np.bincount(labels[rows], minlength=classes).tolist() == [expected] * classes


def test_rare_classes_give_what_they_have() -> None:
    labels = np.array([0] * 50 + [1])
    assert np.bincount(labels[sample_batch(labels, 32, np.random.default_rng(0))]).tolist() == [16, 1]


def test_of_many_classes_a_batch_has_some() -> None:
    labels = np.repeat(np.arange(100), 4)
    counts = np.bincount(labels[sample_batch(labels, 32, np.random.default_rng(0))])
    assert set(counts.tolist()) <= {0, 2}
    assert counts.sum() == 32


def test_vectors_of_texts_with_one_label_become_similar() -> None:
    training = ContrastiveTraining(steps=25, texts=32, lr=3e-3)  # the weights are random, so far from any solution
    records = [
        ClassifyRecord(f"{word} water {number}", label=label)
        for number in range(6)
        for word, label in {"cold": "a", "warm": "b"}.items()
    ]
    words = train_tokenizer_from_texts([record.text for record in records], kind="wordpiece", size=38)
    task = Classify.from_records(records)
    checkpoint = from_preset("bert-tiny", heads=task.heads, vocabulary=words.size)
    examples = task.examples(records, Preprocessing(words, checkpoint.config), labeled=True)
    network = checkpoint.network.eval()
    head = network.get_submodule("heads.sequence").state_dict()
    before = {name: weight.clone() for name, weight in head.items()}

    def loss() -> float:
        vectors, labels, _ = pooled_vectors(network, task, examples, list(range(12)))
        return float(pair_loss(vectors.float(), labels))

    first, steps = loss(), []
    train_contrastive(
        network, task, examples, training, seed=0, report=lambda what, done, total: steps.append((done, total))
    )
    assert loss() < 0.5 * first
    assert not network.training
    assert steps[-1] == (25, 25)
    assert all(torch.equal(before[name], weight) for name, weight in head.items())


def test_repeated_trainings_are_averaged() -> None:
    words = train_tokenizer_from_texts(["cold water", "warm water"], kind="wordpiece", size=24)
    records = [ClassifyRecord(f"{word} water", label=word) for word in ("cold", "warm") for _ in range(4)]
    task = Classify.from_records(records)

    def trained(seed: int, repeats: int) -> dict[str, torch.Tensor]:
        checkpoint = from_preset("bert-tiny", heads=task.heads, vocabulary=words.size, seed=3)
        examples = task.examples(records, Preprocessing(words, checkpoint.config), labeled=True)
        training = ContrastiveTraining(steps=3, texts=4, lr=1e-3, repeats=repeats)
        train_contrastive(checkpoint.network, task, examples, training, seed=seed)
        return {name: weight.detach() for name, weight in checkpoint.network.named_parameters()}

    one, two, mean = trained(5, 1), trained(6, 1), trained(5, 2)
    assert any(not torch.equal(one[name], two[name]) for name in one)
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + two[name]) / 2, rtol=1e-5, atol=1e-7)


def test_a_frozen_network_is_left_as_it_is() -> None:
    task = Classify(names=("a", "b"))
    network = from_preset("bert-tiny", heads=task.heads, vocabulary=40).network.requires_grad_(False)
    training = ContrastiveTraining(steps=25, texts=32, lr=3e-3)
    train_contrastive(network, task, None, training, seed=0)  # type: ignore[arg-type]
