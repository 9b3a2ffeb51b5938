"""The baseline `ngram`: the same as tf-idf and a linear model of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion
from tests.text.test_features import WORD

import regard
from regard.baselines import ngram
from regard.baselines.ngram import build_ngram, fit_ngram, linear_problem
from regard.data.batching.preprocessing import Preprocessing
from regard.data.records import ClassifyRecord, PairRecord
from regard.errors import InputError
from regard.model.bag import BagNetwork
from regard.tasks.classify import Classify
from regard.tasks.pair import Pair

WORDS = ("warm", "cold", "soup", "tea", "good", "bad", "nice", "ugly", "shop", "street", "house", "not", "very", "'s")


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(count)]


def quiet(what: str, done: int, total: int) -> None:
    assert 0 < done <= total


def fitted(task: Any, records: list[Any]) -> tuple[Any, Any]:
    checkpoint, tokenizer = build_ngram(task, records, quiet)
    network = checkpoint.network
    assert isinstance(network, BagNetwork)
    examples = task.examples(records, Preprocessing(tokenizer, checkpoint.config), labeled=True)
    fit_ngram(network, task, examples, seed=0, report=quiet)
    return network, examples


def oracle_features(texts: list[str]) -> Any:
    words = TfidfVectorizer(token_pattern=WORD, ngram_range=(1, 2), binary=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), binary=True)
    return FeatureUnion([("words", words), ("characters", characters)]).fit_transform(texts)


@pytest.mark.parametrize("names", [("no", "yes"), ("bad", "fine", "good")])
def test_probabilities_are_those_of_scikit_learn(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram, "naive_bayes_scale", lambda *_: None)
    monkeypatch.setattr(ngram, "choose_strength", lambda *_, **__: 4.0)
    texts = sentences(60)
    labels = [names[len(text) % len(names)] for text in texts]
    records = [ClassifyRecord(text, label) for text, label in zip(texts, labels, strict=True)]
    network, examples = fitted(Classify.from_records(records), records)
    oracle = LogisticRegression(C=4.0, max_iter=1000, tol=1e-8).fit(oracle_features(texts), labels)
    logits = network(examples.take(range(60)).tokens).logits
    np.testing.assert_allclose(logits.softmax(1).detach(), oracle.predict_proba(oracle_features(texts)), atol=2e-3)


def test_features_of_a_text_are_those_of_tfidf() -> None:
    texts = sentences(40)
    records = [ClassifyRecord(text, str(len(text) % 2)) for text in texts]
    task = Classify.from_records(records)
    checkpoint, tokenizer = build_ngram(task, records, quiet)
    examples = task.examples(records, Preprocessing(tokenizer, checkpoint.config), labeled=True)
    assert isinstance(checkpoint.network, BagNetwork)
    rows = linear_problem(checkpoint.network, task, examples).rows
    expected = oracle_features(texts).tocsr()
    for row in range(40):
        ours = rows.values[rows.bounds[row] : rows.bounds[row + 1]]
        theirs = expected[row].data
        np.testing.assert_allclose(np.sort(ours[ours > 0]), np.sort(theirs), rtol=1e-5)


def test_pairs_have_features_of_either_text_and_of_both() -> None:
    rng = np.random.default_rng(1)
    firsts, others = sentences(300), sentences(300, seed=1)
    labels = rng.integers(0, 2, 300)
    seconds = [first if label else other for first, other, label in zip(firsts, others, labels, strict=True)]
    records = [
        PairRecord(first, second, "same" if label else "other")
        for first, second, label in zip(firsts, seconds, labels, strict=True)
    ]
    network, examples = fitted(Pair.from_records(records), records)
    batch = examples.take(range(300)).tokens
    assert (network(batch).logits.argmax(1).numpy() == labels).mean() > 0.97
    rows, weights = network.encoder.tfidf_rows(batch)
    cosine = network.encoder.similarities(batch, weights)
    torch.testing.assert_close(cosine[torch.from_numpy(labels) == 1], torch.ones(int(labels.sum()), 2))
    assert int(rows.max()) >= 2 * network.config.vocabulary


def test_several_labels_and_numbers() -> None:
    texts = sentences(200)
    several = [ClassifyRecord(text, tuple(w for w in ("warm", "soup") if w in text)) for text in texts]
    network, examples = fitted(Classify.from_records(several), several)
    predicted = (network(examples.take(range(200)).tokens).logits > 0).numpy()
    assert (predicted == np.asarray(examples.by_sequence["label"])).mean() > 0.97
    numbers = [ClassifyRecord(text, 3.0 + text.count("warm")) for text in texts]
    network, examples = fitted(Classify.from_records(numbers), numbers)
    value = network(examples.take(range(200)).tokens).logits[:, 0].detach().numpy()
    assert np.corrcoef(value, examples.by_sequence["label"])[0, 1] > 0.9


def test_class_weights_favor_rare_classes() -> None:
    texts = sentences(300)
    records = [ClassifyRecord(text, "rare" if "tea" in text and "good" in text else "often") for text in texts]
    counts = []
    for balance in ("none", "weights"):
        network, examples = fitted(Classify.from_records(records, class_balance=balance), records)
        counts.append(int(network(examples.take(range(300)).tokens).logits.argmax(1).sum()))
    assert counts[1] >= counts[0]


def test_texts_without_n_grams() -> None:
    records = [ClassifyRecord(" ", "a"), ClassifyRecord("", "b")]
    with pytest.raises(InputError, match="have no n-grams"):
        build_ngram(Classify.from_records(records), records, quiet)


def test_training_writes_a_folder_that_loads_bit_for_bit(reviews_csv: Path, tmp_path: Path) -> None:
    result = regard.train(reviews_csv, preset="ngram", out=tmp_path / "run", device="cpu")
    assert (result.steps, result.task) == (0, "classify")
    assert "accuracy" in result.scores
    model = regard.load(tmp_path / "run")
    model.save(tmp_path / "again")
    again = regard.load(tmp_path / "again")
    texts = ["the soup was warm", "?", "completely unknown 漢字"]
    assert [one.json() for one in model.predict(texts)] == [one.json() for one in again.predict(texts)]
    for name, weight in model.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])
    assert (tmp_path / "run/features.json").read_bytes() == (tmp_path / "again/features.json").read_bytes()
    assert "baseline ngram" in (tmp_path / "run/README.md").read_text()
    assert not list((tmp_path / "run").glob("*.p*kl*"))
