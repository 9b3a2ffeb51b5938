"""Exported files: names, parity with torch, plain onnxruntime, errors."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.predict.models import random_checkpoint, word_text

import regard
from regard.errors import InputError, MissingExtra, RegardError
from regard.export import onnx_files
from regard.export.graphs import graphs
from regard.export.onnx_files import OnnxExport, check_parity, write_onnx_files
from regard.export.padded import padded_copy
from regard.model.transformer import Transformer


def test_files_have_the_names_of_the_hub(exported: OnnxExport) -> None:
    exact, int8 = exported.files
    assert (exact.name, int8.name) == ("onnx/model.onnx", "onnx/model_quantized.onnx")
    assert exact.max_difference < 1e-5 < int8.max_difference < 0.2
    assert exact.bytes > int8.bytes
    assert exact.inputs == ("input_ids", "attention_mask", "token_type_ids")
    assert exported.json()["files"][0]["outputs"] == ["logits", "pooler_output", "last_hidden_state"]
    assert {path.name for path in (Path(exported.folder) / "onnx").iterdir()} == {"model.onnx", "model_quantized.onnx"}


def test_padded_batches_in_plain_onnxruntime(exported_folder: Path) -> None:
    import onnxruntime

    model = regard.load(exported_folder, device="cpu")
    texts = [word_text(9), word_text(4, start=3)]
    encodings = [model.require_tokenizer().encode(text).ids for text in texts]
    ids, mask = (np.zeros((2, 11), np.int64) for _ in range(2))
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding)] = encoding
        mask[row, : len(encoding)] = 1
    session = onnxruntime.InferenceSession(exported_folder / "onnx" / "model.onnx")
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    logits = session.run(["logits"], feed)[0]
    for row, output in enumerate(model.outputs(encodings, segments=[[0] * len(ids) for ids in encodings])):
        assert output.logits is not None
        assert np.allclose(logits[row], output.logits.numpy(), atol=1e-4)


def test_a_decoder_has_a_cache(tmp_path: Path) -> None:
    (file,) = write_onnx_files(random_checkpoint("tiny-gpt2").network, tmp_path)
    assert file.max_difference < 1e-4
    assert file.inputs[2] == "past_key_values.0.key"
    assert file.outputs[:2] == ("logits", "present.0.key")


def test_a_wrong_file_is_refused(exported_folder: Path) -> None:
    network = random_checkpoint("tiny-bert", {"sequence": 3}).network
    assert isinstance(network, Transformer)
    network.get_parameter("heads.sequence.output.weight").data *= 2
    (graph,) = graphs(padded_copy(network))
    with pytest.raises(RegardError, match="does not compute what torch computes"):
        check_parity(graph, exported_folder / "onnx" / "model.onnx")


def test_recurrent_networks_and_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="only Transformers"):
        write_onnx_files(random_checkpoint("tiny-elmo").network, tmp_path)
    with pytest.raises(InputError, match="int8 files are written for encoders only"):
        write_onnx_files(random_checkpoint("tiny-gpt2").network, tmp_path, int8=True)
    original = builtins.__import__

    def without_onnx(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("onnx"):
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_onnx)
    with pytest.raises(MissingExtra, match=r"regard\[onnx\]"):
        onnx_files.require_onnx()


def test_an_operation_that_onnx_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def refuse(*_: Any, **__: Any) -> None:
        raise torch.onnx.errors.OnnxExporterError("no ONNX function for aten.strange")

    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(RegardError, match=r"operation that ONNX lacks \(no ONNX function for aten.strange\)"):
        write_onnx_files(random_checkpoint("tiny-bert").network, tmp_path)
