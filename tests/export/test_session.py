"""The network in ONNX Runtime answers as torch does, without padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint, word_text

import regard
from regard.errors import FolderError
from regard.export import int8_encoder
from regard.export import session as sessions
from regard.export.session import OnnxTransformer, open_session, without_spinning
from regard.model.transformer import Transformer
from regard.predict.model import Model
from regard.ragged import Ragged

TEXTS = [word_text(9), word_text(4, start=3), word_text(17), word_text(9, start=5)]


@pytest.fixture(name="model")
def model_fixture(exported_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The model on the int8 file of its folder."""
    monkeypatch.setattr(int8_encoder, "can_run_int8_encoder", lambda _: False)  # else the file is not used
    return regard.load(exported_folder, device="cpu", engine="int8")


@pytest.mark.usefixtures("fast_int8")
def test_predict_and_embed(exported_folder: Path, model: Model) -> None:
    exact = regard.load(exported_folder, device="cpu")
    assert (exact.engine, model.engine) == ("torch", "onnx int8")
    ours, theirs = (one.embed(TEXTS, normalize=True) for one in (exact, model))
    assert (ours * theirs).sum(1).min() > 0.99
    assert np.allclose(model.embed(TEXTS[:1]), model.embed(TEXTS)[:1], atol=0.2)
    for one, other in zip(exact.predict(TEXTS), model.predict(TEXTS), strict=True):
        assert one.json()["scores"] == pytest.approx(other.json()["scores"], abs=0.1)


@pytest.mark.usefixtures("fast_int8")
def test_other_layers_and_hooks_run_in_torch(exported_folder: Path, model: Model) -> None:
    exact = regard.load(exported_folder, device="cpu")
    assert np.array_equal(model.embed(TEXTS, layer=1), exact.embed(TEXTS, layer=1))
    assert model.attention(TEXTS[0]).windows
    network = model.inference_network
    assert isinstance(network, OnnxTransformer)
    calls = []
    handle = network.encoder.layers[0].register_forward_hook(lambda *_: calls.append(1))
    model.embed(TEXTS)
    handle.remove()
    assert calls


@torch.inference_mode()
def test_the_exact_file_without_padding(exported_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where texts of one length need several calls."""
    network = regard.load(exported_folder, device="cpu").network
    assert isinstance(network, Transformer)
    in_onnx = OnnxTransformer(network, open_session(exported_folder / "onnx" / "model.onnx"))
    batch = Ragged.of([[5, 6, 7], [8, 9], [10, 11, 12], [13, 14, 15], [16, 17]])
    expected = network.read(batch)
    assert torch.allclose(in_onnx.read(batch), expected, atol=1e-4)
    monkeypatch.setattr(sessions, "RUN_TOKENS", 6)
    assert torch.allclose(in_onnx.read(batch), expected, atol=1e-4)


def test_files_from_elsewhere(exported_folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "model.onnx"
    bad.write_bytes(b"no model")
    with pytest.raises(FolderError, match="Write it again with regard export"):
        open_session(bad)
    session = open_session(exported_folder / "onnx" / "model.onnx", threads=1)
    session.get_outputs = list  # type: ignore[method-assign]  # as if there were none
    network = random_checkpoint("tiny-bert", {"sequence": 3}).network
    with pytest.raises(FolderError, match="has no output last_hidden_state"):
        OnnxTransformer(network, session)  # type: ignore[arg-type]


def test_cpus_without_vnni_get_another_kernel(exported_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "needs_reduced_range", lambda: True)
    session = open_session(exported_folder / "onnx" / "model_quantized.onnx")
    assert session.get_session_options().get_session_config_entry("session.x64quantprecision") == "1"
    assert torch.get_num_threads() == session.get_session_options().intra_op_num_threads


def test_weights_of_seven_bits_need_no_other_kernel(exported_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "needs_reduced_range", lambda: True)
    session = open_session(exported_folder / "onnx" / "model_quantized.onnx", may_overflow=False)
    with pytest.raises(RuntimeError, match="x64quantprecision"):
        session.get_session_options().get_session_config_entry("session.x64quantprecision")


def test_threads_sleep_if_asked(exported_folder: Path) -> None:
    file = exported_folder / "onnx" / "model.onnx"
    with without_spinning():
        session = open_session(file)
    assert session.get_session_options().get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError):
        open_session(file).get_session_options().get_session_config_entry("session.intra_op.allow_spinning")
