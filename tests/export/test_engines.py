"""Engines by name, what "auto" means, and what happens where the CPU lacks instructions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint, word_text, word_tokenizer

import regard
from regard.errors import EngineWarning, FolderError, InputError, RegardError
from regard.export import engines, int8_encoder, int8_linear
from regard.export.engines import open_engine, recorded_engine, resolve_engine
from regard.predict.model import Model

TEXTS = [word_text(9), word_text(4, start=3), word_text(17)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkpoint = random_checkpoint("tiny-bert", {"sequence": 3})
    model = Model(checkpoint, word_tokenizer(special=True))
    return model.save(tmp_path_factory.mktemp("engines") / "model")


def without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_encoder, "can_run_int8_encoder", lambda _: False)


@pytest.mark.usefixtures("fast_int8")
@pytest.mark.parametrize("engine", ["int8", "onnx int8"])
def test_int8_predicts_and_embeds_nearly_the_same(folder: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "int8":
        without_onnx(monkeypatch)
    exact, int8 = regard.load(folder, device="cpu"), regard.load(folder, device="cpu", engine="int8")
    assert (exact.engine, int8.engine) == ("torch", engine)
    ours, theirs = (model.embed(TEXTS, normalize=True) for model in (exact, int8))
    assert (ours * theirs).sum(1).min() > 0.99
    assert not np.array_equal(ours, theirs)
    for one, other in zip(exact.predict(TEXTS), int8.predict(TEXTS), strict=True):
        assert one.json()["scores"] == pytest.approx(other.json()["scores"], abs=0.1)
    assert int8.save(folder.parent / engine).is_dir()


def test_auto_is_what_the_folder_records(folder: Path, tmp_path: Path) -> None:
    assert resolve_engine("auto", folder, "cpu") == "torch"
    (tmp_path / "run.json").write_text(json.dumps({"engine": {"name": "int8", "exclude": ["a"]}}))
    assert recorded_engine(tmp_path) == {"name": "int8", "exclude": ["a"]}
    assert resolve_engine("auto", tmp_path, "cpu") == "int8"
    assert resolve_engine("auto", tmp_path, "cuda") == "torch"
    assert resolve_engine("torch", tmp_path, "cpu") == "torch"
    (tmp_path / "run.json").write_text(json.dumps({"engine": "fast"}))
    with pytest.raises(FolderError, match="expected one of torch, int8"):
        recorded_engine(tmp_path)


def test_unknown_engines_and_gpus_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match='engine "int4" is not known'):
        regard.load(folder, engine="int4")
    with pytest.raises(InputError, match="runs on the CPU, but the model is on a GPU"):
        resolve_engine("int8", folder, "cuda")


@pytest.mark.parametrize(
    ("support", "engine", "words"),
    [("none", "torch", "fp32"), ("reduced", "int8", "7 bits"), ("reduced", "onnx int8", "7 bits")],
)
def test_a_cpu_without_the_instructions(
    folder: Path, support: str, engine: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "int8_support", lambda: support)
    if engine == "int8":
        without_onnx(monkeypatch)
    with pytest.warns(EngineWarning, match=words):
        model = regard.load(folder, device="cpu", engine="int8")
    assert model.engine == engine
    exact = regard.load(folder, device="cpu").embed(TEXTS, normalize=True)
    assert (exact * model.embed(TEXTS, normalize=True)).sum(1).min() > 0.97


@pytest.mark.parametrize(("module", "check"), [(int8_linear, "check_layer"), (int8_encoder, "check_int8_encoder")])
def test_a_wrong_kernel_means_fp32(module: object, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise RegardError("int8 products are wrong on this machine.")

    monkeypatch.setattr(engines, "int8_support", lambda: "full")
    if module is int8_linear:
        without_onnx(monkeypatch)
    monkeypatch.setattr(module, check, wrong)
    opened = open_engine(random_checkpoint("tiny-bert"), None, "int8")
    assert opened.name == "torch"
    assert opened.notice == "int8 products are wrong on this machine. Computing in fp32."


@pytest.mark.usefixtures("fast_int8")
def test_a_decoder_generates_in_int8(tmp_path: Path) -> None:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model_quantized.onnx").touch()  # files of decoders come from other programs
    model = Model(random_checkpoint("tiny-gpt2"), engine="int8", folder=tmp_path)
    assert model.engine == "int8"
    assert len(model.generate_ids([[5, 6]], max_tokens=3)[0]) == 3


def test_torch_is_the_network_itself() -> None:
    checkpoint = random_checkpoint("tiny-bert")
    assert open_engine(checkpoint, None, "auto").network is checkpoint.network
    assert Model(checkpoint).inference_network is checkpoint.network
    assert isinstance(next(checkpoint.network.parameters()), torch.nn.Parameter)
