"""The baseline `static`: vectors of tokens from an encoder or from a file of word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import samples
from regard.baselines import static
from regard.baselines.static import frequent_words, from_encoder, reduced, token_counts, weighted, with_words
from regard.errors import InputError
from regard.text.tokenizer import Tokenizer
from regard.word_vectors.files import save_vectors
from regard.word_vectors.vectors import WordVectors


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder with a tokenizer of its own."""
    folder = tmp_path_factory.mktemp("encoder") / "run"
    regard.train(samples.path("messages"), preset="tiny-bert", out=folder, steps=1, device="cpu", dev_fraction=0)
    return folder


def quiet(what: str, done: int, total: int) -> None:
    assert 0 < done <= total


def test_every_entry_is_passed_through_the_encoder_once(encoder: Path) -> None:
    texts = ["zyxwvut parcels", "zyxwvut"]
    tokenizer, table = from_encoder(encoder, texts, quiet)
    model = regard.load(encoder)
    original = model.require_tokenizer()
    assert frequent_words(original, texts)[0] == "zyxwvut"
    number = tokenizer.ids_batch(["zyxwvut"], special=False)[0]
    assert number == [original.size]  # a token of its own now
    np.testing.assert_allclose(table[number[0]], model.embed(["zyxwvut"])[0], atol=1e-5)
    assert tokenizer.size == len(table)


def test_one_special_token_is_before_each_text(encoder: Path) -> None:
    tokenizer = with_words(Tokenizer.load(encoder), [])
    assert len(tokenizer.ids_batch([""])[0]) == 1
    assert tokenizer.surrounding_ids[1] == ()
    pair = tokenizer.encode("a parcel", "a parcel")
    assert {0, 1} == set(pair.segments)


def test_principal_components_keep_distances_and_frequent_tokens_are_shorter() -> None:
    rng = np.random.default_rng(0)
    table = (rng.normal(size=(50, 3)) @ rng.normal(size=(3, 10))).astype(np.float32)
    counts = np.arange(50)
    short = reduced(table, counts, 3)
    assert short.shape == (50, 3)
    np.testing.assert_allclose(np.linalg.norm(short[1] - short[2]), np.linalg.norm(table[1] - table[2]), rtol=1e-4)
    sizes = np.linalg.norm(weighted(np.ones((50, 3), np.float32), counts), axis=1)
    assert (np.diff(sizes) < 0).all()


def test_texts_without_tokens(encoder: Path) -> None:
    with pytest.raises(InputError, match="have no tokens"):
        token_counts(Tokenizer.load(encoder), ["", " "])


def test_a_classifier_is_trained_loaded_and_written_again(encoder: Path, tmp_path: Path) -> None:
    regard.train(samples.path("messages"), preset="static", start=encoder, epochs=8, out=tmp_path / "run", device="cpu")
    assert regard.evaluate(tmp_path / "run", samples.path("messages")).scores["accuracy"].value > 0.4  # of six classes
    model = regard.load(tmp_path / "run")
    assert model.embed(["a parcel", "money"]).shape == (2, model.config.width)
    again = regard.load(model.save(tmp_path / "again"))
    for name, weight in model.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])
    assert model.predict(["a parcel"]) == again.predict(["a parcel"])


@pytest.mark.parametrize("task", ["pair", "embed"])
def test_pairs(task: str, encoder: Path, tmp_path: Path) -> None:
    words = ["soup", "tea", "parcel", "money", "account", "refund"]
    rows = [{"first": a, "second": b, "label": float(a == b)} for a in words for b in words]
    options: dict[str, Any] = {"preset": "static", "start": encoder, "epochs": 1, "device": "cpu"}
    result = regard.train(rows * 2, task=task, labels="number", out=tmp_path / "run", **options)
    assert result.task == task
    assert regard.evaluate(tmp_path / "run", rows, labels="number").rows == len(rows)


def test_word_vectors(tmp_path: Path) -> None:
    words = ("parcel", "money", "where", "is", "my", "back", "account", "password")
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32))
    save_vectors(vectors, tmp_path / "vectors.txt")
    regard.train(
        samples.path("messages"), preset="static", start=tmp_path / "vectors.txt", epochs=2, out=tmp_path / "run"
    )
    model = regard.load(tmp_path / "run")
    assert model.require_tokenizer().size == 9
    assert model.predict(["Where is my parcel?", "unknown"])[0].json()["label"]


def test_only_encoders_have_vectors(tmp_path: Path) -> None:
    regard.create("tiny-gpt2").save(tmp_path / "gpt")
    with pytest.raises(InputError, match="is no encoder"):
        from_encoder(tmp_path / "gpt", ["a"], quiet)
    assert static.WIDTH == 256
