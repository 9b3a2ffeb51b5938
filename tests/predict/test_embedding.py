"""Vectors of texts: as the reference computes them, by pooling, and over the windows of long texts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from tests.predict.models import LONG, TEXTS, random_checkpoint, word_text, word_tokenizer
from tests.references import transformers

from regard.checkpoint.families import preset
from regard.checkpoint.folder import Checkpoint, read_folder
from regard.checkpoint.network_tensors import build_on_meta, set_tensors
from regard.checkpoint.write_folder import write_folder
from regard.errors import InputError
from regard.predict import Model
from regard.progress import Progress


@pytest.mark.parametrize("batch_tokens", [1, 40, 10_000])
def test_minilm_is_the_reference_with_mean_pooling(
    minilm: Model, reference: Any, theirs: Any, batch_tokens: int
) -> None:
    batch = theirs(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states, mask = reference(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
    expected = ((states * mask).sum(1) / mask.sum(1)).numpy()
    result = minilm.embed(TEXTS, batch_tokens=batch_tokens)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float32
    assert np.abs(result - expected).max() < 1e-5
    scaled = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(minilm.embed(TEXTS, normalize=True, batch_tokens=batch_tokens) - scaled).max() < 1e-5


@pytest.mark.parametrize(
    "name", ["tiny-bert", "tiny-modernbert", "tiny-gpt2", "tiny-t5", "tiny-albert", "tiny-electra"]
)
def test_every_layer_is_that_of_the_reference(name: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", random_checkpoint(name))
    model = Model(read_folder(tmp_path / "model"), word_tokenizer(special=True))
    network = transformers.AutoModel.from_pretrained(tmp_path / "model").eval()
    network = network.get_encoder() if name == "tiny-t5" else network
    texts = [word_text(30), word_text(3, start=5)]
    for number, text in enumerate(texts):
        ids = torch.tensor([model.tokenizer.encode(text).ids])  # type: ignore[union-attr]
        with torch.no_grad():
            expected = network(input_ids=ids, output_hidden_states=True).hidden_states
        assert len(expected) == model.network.reader.depth + 1
        for layer, states in enumerate(expected):
            for index in (layer, layer - len(expected)):
                result = model.embed_tokens(texts, layer=index)[number]
                assert np.abs(result - states[0].numpy()).max() < 1e-4, index


def test_pools(minilm: Model) -> None:
    tokens = minilm.embed_tokens(TEXTS)
    assert [len(one) for one in tokens] == [len(minilm.tokenizer.encode(text)) for text in TEXTS]  # type: ignore[union-attr]
    pools: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "first": lambda one: one[0],
        "max": lambda one: one.max(0),
        "mean": lambda one: one.mean(0),
        "auto": lambda one: one.mean(0),
    }
    for how, make in pools.items():
        assert np.abs(minilm.embed(TEXTS, pooling=how) - np.stack([make(one) for one in tokens])).max() < 1e-5
    for one in minilm.embed_tokens(TEXTS, normalize=True):
        assert np.allclose(np.linalg.norm(one, axis=1), 1, atol=1e-5)


def test_the_folder_says_how_to_pool() -> None:
    model = Model(dataclasses.replace(random_checkpoint("tiny-bert"), pooling="max"), word_tokenizer(special=True))
    assert model.pooling == "max"
    assert np.array_equal(model.embed([word_text(5)]), model.embed([word_text(5)], pooling="max"))
    assert not np.allclose(model.embed([word_text(5)]), model.embed([word_text(5)], pooling="mean"), atol=1e-3)


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("length", [14, 15, 16, 17, 40, 123])
def test_a_long_text_is_windowed_and_every_token_is_given_once(length: int, special: bool) -> None:
    model = Model(random_checkpoint("tiny-bert", longest=16), word_tokenizer(special=special))
    texts = [word_text(length), word_text(4, start=3), word_text(2 * length, start=1)]
    around = 2 * special
    result = model.embed_tokens(texts)
    assert [len(states) for states in result] == [length + around, 4 + around, 2 * length + around]
    whole = model.embed_tokens([texts[1]])[0]
    assert np.allclose(result[1], whole, atol=1e-5)
    for how in ("mean", "max"):
        pooled = model.embed(texts, pooling=how)
        expected = [getattr(states, how)(0) for states in result]
        assert np.abs(pooled - np.stack(expected)).max() < 1e-5
    for batch_tokens in (1, 17, 100):
        again = model.embed_tokens(texts, batch_tokens=batch_tokens)
        assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(result, again, strict=True))


def test_each_token_of_a_long_text_is_at_its_own_place() -> None:
    """After the embeddings a state tells its word: words that are far apart lose nothing and swap nothing."""
    checkpoint = random_checkpoint("tiny-gpt2", longest=16)
    with torch.no_grad():
        checkpoint.network.reader.get_parameter("embeddings.places.weight").zero_()
    model = Model(checkpoint, word_tokenizer(special=True))
    text = word_text(97)
    (result,) = model.embed_tokens([text], layer=0)
    table = checkpoint.network.get_parameter("decoder.embeddings.tokens.weight").detach().numpy()
    ids = model.tokenizer.encode(text).ids  # type: ignore[union-attr]
    assert np.allclose(result, table[list(ids)], atol=1e-6)


def test_a_text_that_fits_is_read_whole(minilm: Model) -> None:
    fitting = " ".join(["word"] * 510)
    (states,) = minilm.embed_tokens([fitting])
    ids = minilm.tokenizer.encode(fitting).ids  # type: ignore[union-attr]
    assert len(ids) == 512
    assert np.allclose(states, minilm.outputs([ids])[0].hidden.numpy(), atol=1e-5)


def test_a_very_long_text_of_minilm(minilm: Model) -> None:
    count = len(minilm.tokenizer.encode(LONG))  # type: ignore[union-attr]
    assert count > 600
    (states,) = minilm.embed_tokens([LONG])
    assert len(states) == count
    one, other = (minilm.embed([LONG, "hi"], batch_tokens=tokens)[0] for tokens in (100, 10_000))
    assert np.abs(one - other).max() < 1e-5
    assert np.abs(one - states.mean(0)).max() < 1e-5
    assert np.array_equal(minilm.embed([LONG, "hi"])[0], other)


def test_the_first_of_a_long_text_is_the_mean_over_its_windows() -> None:
    model = Model(random_checkpoint("tiny-bert", longest=16), word_tokenizer(special=True))
    ids = model.tokenizer.encode(word_text(20)).ids  # type: ignore[union-attr]
    parts = [[0, *ids[1:15], 1], [0, *ids[7:21], 1]]
    expected = torch.stack([output.hidden[0] for output in model.outputs(parts)]).mean(0)
    assert np.allclose(model.embed([word_text(20)], pooling="first")[0], expected, atol=1e-5)


def test_progress_is_reported_up_to_the_last_text(minilm: Model) -> None:
    reports: list[Progress] = []
    minilm.embed([*TEXTS, TEXTS[0]], batch_tokens=12, progress=reports.append)
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert reports[-1] == Progress("texts", 6, 6)
    assert len(reports) > 3


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "one string was given where a list of texts was expected. Write [text]."),
        ([], "the list of texts is empty; give at least one text."),
        (["a", ""], "text 1 is empty, so there is nothing to read."),
        (["a", " \n\t "], "text 1 is empty"),
        (["a", None], "text 1 is of type NoneType, but a string was expected."),
        (["a", 5], "text 1 is of type int, but a string was expected."),
        (["a", b"b"], 'text 1 is of type bytes, but a string was expected. Decode it first: text.decode("utf-8").'),
        (["a", "b\ud83dc"], "text 1 has half of a surrogate pair (U+D83D) at character 1"),
        (5, "a list of texts was expected, not 5."),
        (None, "a list of texts was expected, not None."),
    ],
)
def test_texts_that_cannot_be_read_are_reported(minilm: Model, texts: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        minilm.embed(texts)


def test_texts_may_come_one_by_one(minilm: Model) -> None:
    expected = minilm.embed(TEXTS)
    assert np.array_equal(minilm.embed(text for text in TEXTS), expected)
    assert np.array_equal(minilm.embed(np.array(TEXTS)), expected)
    assert np.array_equal(minilm.embed(tuple(TEXTS)), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "mena"}, 'pooling "mena" is not known. Did you mean "mean"?'),
        ({"layer": 7}, "layer 7 was given; this network has 0 (embeddings) to 6, or -1 for the last."),
        ({"layer": -8}, "layer -8 was given"),
        ({"batch_tokens": 0}, "batch_tokens is 0, expected at least 1 token."),
    ],
)
def test_settings_that_cannot_be_used_are_refused(minilm: Model, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        minilm.embed(["a"], **settings)


def test_a_text_without_a_token_is_reported() -> None:
    tokenizer = word_tokenizer(special=False)
    tokenizer.backend.normalizer = tokenizers.normalizers.Replace("\u200b", "")
    model = Model(random_checkpoint("tiny-gpt2"), tokenizer)
    with pytest.raises(InputError, match="text 1 has no token this tokenizer can read"):
        model.embed(["w1", "\u200b"])


def test_a_tokenizer_of_another_model_is_reported() -> None:
    small = dataclasses.replace(preset("tiny-bert").config, vocabulary=50)
    network = build_on_meta(small, {})
    set_tensors(network, {path: torch.zeros(tensor.shape) for path, tensor in network.named_parameters()})
    model = Model(Checkpoint("bert", small, network.eval()), word_tokenizer(special=True))
    with pytest.raises(InputError, match="text 1 has the token 99, but this network has 50"):
        model.embed(["w1", "w2 w97"])
    with pytest.raises(InputError, match="the text has the token 99, but this network has 50"):
        model.attention("w97")
