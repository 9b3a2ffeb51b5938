"""The graph in the user's cache: used if it is there, made again if it is damaged, and never for other weights."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.errors import InputError, RegardError
from regard.export import int8_encoder
from regard.export.encoder_graph import QUERIES, ROWS
from regard.export.int8_encoder import Int8Encoder, check_int8_encoder, open_int8_encoder
from regard.model.transformer import Transformer
from regard.ragged import Ragged

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
BATCH = Ragged.of([[3, 5, 9, 11, 8]])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(int8_encoder, "FEW_BYTES", 0)
    return tmp_path / "regard" / "int8"


@pytest.fixture
def network() -> Transformer:
    network = random_checkpoint("tiny-bert").network
    assert isinstance(network, Transformer)
    return network


@torch.inference_mode()
def read(opened: Int8Encoder) -> np.ndarray:
    return opened.read(BATCH).numpy()


def test_weights_are_converted_once(cache: Path, network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert network.encoder is not None
    first = read(open_int8_encoder(network))
    (file,) = cache.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(int8_encoder, "encoder_graph", None)  # would fail
        assert np.array_equal(read(open_int8_encoder(network)), first)
    file.write_bytes(b"damaged")
    assert np.array_equal(read(open_int8_encoder(network)), first)
    tables = sum(tensor.nbytes for tensor in [*network.encoder.embeddings.parameters(), *network.heads.parameters()])
    assert open_int8_encoder(network).bytes == file.stat().st_size + tables
    other = open_int8_encoder(network, exclude=["encoder.layers.0.attention.out"])
    assert not np.array_equal(read(other), first)
    with torch.no_grad():
        network.encoder.layers[0].attention.out.weight *= 2  # type: ignore[union-attr, operator]
    assert not np.array_equal(read(open_int8_encoder(network)), first)
    assert len(list(cache.iterdir())) == 3


def test_old_files_are_removed(cache: Path, network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_encoder, "MAX_FILES", 1)
    open_int8_encoder(network, reduce_range=False)
    (old,) = cache.iterdir()
    time.sleep(0.01)
    open_int8_encoder(network, reduce_range=True)
    assert len(list(cache.iterdir())) == 1
    assert not old.exists()


def test_no_cache_folder(cache: Path, network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_encoder, "user_cache", lambda *_: None)
    assert read(open_int8_encoder(network)).shape == (5, network.config.width)
    assert not cache.exists()


def test_old_versions_of_onnxruntime_use_another_operation(
    network: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnxruntime

    expected = read(open_int8_encoder(network))
    monkeypatch.setattr(onnxruntime, "__version__", "1.19.2")
    assert int8_encoder._attention_operation() == "MultiHeadAttention"
    assert np.allclose(read(open_int8_encoder(network)), expected, atol=1e-3)


def test_wrong_results_and_long_texts_are_errors(network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_int8_encoder(network)
    monkeypatch.setattr(int8_encoder, "MIN_SIMILARITY", 1.0)
    with pytest.raises(RegardError, match="int8 is wrong on this machine: hidden states have a similarity of"):
        check_int8_encoder(network, opened)
    limit = network.config.max_tokens
    assert limit is not None
    with pytest.raises(InputError, match=f"at most {limit}"):
        opened.read(Ragged.of([[5] * (limit + 1)]))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int]]]:
    """The queries and rows of all calls."""
    calls: list[tuple[int, list[int]]] = []
    feed = Int8Encoder.feed

    def noting(*args: Any) -> dict[str, Any]:
        values = feed(*args)
        calls.append((int(values[QUERIES][0]), values[ROWS].tolist()))
        return values

    monkeypatch.setattr(Int8Encoder, "feed", noting)
    return calls


@torch.inference_mode()
def test_a_classifier_computes_the_first_tokens_alone(network: Transformer, asked: list[tuple[int, list[int]]]) -> None:
    torch.manual_seed(0)
    classifier = Transformer(network.config, heads={"sequence": 3}).eval()
    opened = open_int8_encoder(classifier)
    asked.clear()  # of the check
    batch = Ragged.of([[3, 5, 9, 11, 8], [7, 2], [4, 4]])
    at = torch.zeros(0, dtype=torch.int64)
    expected, alone, whole = classifier(batch, at=at), opened(batch, at=at), opened(batch)
    assert asked[:2] == [(1, [0]), (1, [0, 1])]  # one call for each length
    assert asked[2:] == [(5, [0, 1, 2, 3, 4]), (2, [0, 1, 2, 3])]
    assert alone.hidden.shape == (0, network.config.width)
    assert torch.allclose(alone.logits, whole.logits, atol=0.02)
    assert torch.allclose(alone.logits, expected.logits, atol=0.05)


@pytest.mark.parametrize("heads", [{"token": 5}, {"span": 2}, {"masked": 0}, {"sequence": 3}])
@torch.inference_mode()
def test_heads_are_those_of_torch(cache: Path, heads: dict[str, int]) -> None:
    network = random_checkpoint("tiny-bert", heads).network
    assert isinstance(network, Transformer)
    opened = open_int8_encoder(network)
    batch, at = Ragged.of([[3, 5, 9], [4, 8]]), torch.tensor([1, 4])
    for chosen in (None, at):
        needed = opened.needed_positions(batch, chosen)
        ours, hidden = opened(batch, at=chosen), opened.run_session(batch, at=needed)
        torch_heads = Transformer.apply_heads(opened, hidden, batch, at=chosen, needed=needed)
        assert ours.logits is not None
        assert torch_heads.logits is not None
        assert torch.allclose(ours.logits, torch_heads.logits, atol=1e-5)
        assert torch.allclose(ours.hidden, torch_heads.hidden)


@torch.inference_mode()
def test_only_the_tokens_that_are_asked_for_are_computed(
    cache: Path, network: Transformer, asked: list[tuple[int, list[int]]]
) -> None:
    torch.manual_seed(0)
    tagger = Transformer(network.config, heads={"token": 5}).eval()
    opened = open_int8_encoder(tagger)
    asked.clear()
    batch = Ragged.of([[3, 5, 9, 11, 8], [7, 2], [], [4, 4, 6, 3, 1], [6, 6, 6]])
    at = torch.tensor([9, 1, 13, 9])  # position 2 of the fourth sequence, 1 of the first, 1 of the last
    some, exact, whole = opened(batch, at=at), tagger(batch, at=at), opened(batch)
    assert asked[:2] == [(3, [1, 5, 5]), (2, [1])]  # a sequence of two tokens is not computed
    assert len(asked) == 5
    for name in ("logits", "hidden"):
        assert torch.allclose(getattr(some, name), getattr(whole, name)[at], atol=0.15)
        assert torch.allclose(getattr(some, name), getattr(exact, name), atol=0.15)
    asked.clear()
    nothing = opened(batch, at=at[:0])
    assert (nothing.hidden.shape, nothing.logits.shape, asked) == ((0, network.config.width), (0, 5), [])
    assert opened(Ragged.of([[]]), at=at[:0]).logits.shape == (0, 5)


@pytest.mark.parametrize("pooling", ["first", "mean"])
@torch.inference_mode()
def test_heads_of_tokens_and_of_sequences(cache: Path, network: Transformer, pooling: Any) -> None:
    torch.manual_seed(0)
    config = replace(network.config, pool=replace(network.config.pool, pooling=pooling))
    both = Transformer(config, heads={"masked": 0, "next": 2}).eval()
    opened = open_int8_encoder(both, reduce_range=False)
    batch, at = Ragged.of([[3, 5, 9, 11, 8], [7, 2], []]), torch.tensor([6, 2])
    some, exact, whole = opened(batch, at=at), both(batch, at=at), opened(batch)
    for ours, theirs in ((some.hidden, whole.hidden[at]), (some.logits, whole.logits[at]), (some.logits, exact.logits)):
        assert torch.allclose(ours, theirs, atol=0.15)
    for name in ("pooled", "next_sentence"):
        assert torch.allclose(getattr(some, name), getattr(whole, name), atol=0.05)
        assert torch.allclose(getattr(some, name), getattr(exact, name), atol=0.05)
