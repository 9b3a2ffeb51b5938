"""The graph in the user's cache: used if it is there, made again if it is damaged, and never for other weights."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.errors import InputError, RegardError
from regard.export import int8_encoder
from regard.export.encoder_graph import QUERIES
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
    open_int8_encoder(network)
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


@torch.inference_mode()
def test_a_classifier_computes_the_first_tokens_alone(network: Transformer, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    classifier = Transformer(network.config, heads={"sequence": 3}).eval()
    opened = open_int8_encoder(classifier)
    asked: list[int] = []
    feed = opened.feed

    def noting(*args: Any, first: bool) -> dict[str, Any]:
        values = feed(*args, first=first)
        asked.extend(values[QUERIES].tolist())
        return values

    monkeypatch.setattr(opened, "feed", noting)
    batch = Ragged.of([[3, 5, 9, 11, 8], [7, 2], [4, 4]])
    at = torch.zeros(0, dtype=torch.int64)
    expected, alone, whole = classifier(batch, at=at), opened(batch, at=at), opened(batch)
    assert asked[:2] == [1, 1]  # one call for each length
    assert sorted(asked[2:]) == [2, 5]
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
        ours, hidden = opened(batch, at=chosen), opened.read(batch)
        torch_heads = Transformer.apply_heads(opened, hidden, batch, at=chosen, needed=None)
        assert ours.logits is not None
        assert torch_heads.logits is not None
        assert torch.allclose(ours.logits, torch_heads.logits, atol=1e-5)
        assert torch.allclose(ours.hidden, torch_heads.hidden)
