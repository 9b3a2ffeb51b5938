"""Exported files: names, parity with torch, plain onnxruntime, errors."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import fork_server
from tests.predict.models import random_checkpoint, word_text

import regard
from regard.errors import InputError, MissingExtra, RegardError
from regard.export import onnx_files
from regard.export.graphs import encoder_graph
from regard.export.onnx_files import OnnxExport, check_parity, write_onnx_files
from regard.export.padded import padded_copy
from regard.model.transformer import Transformer
from regard.progress import Progress


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


ALONE = """
import json, sys
sys.modules |= dict.fromkeys(("torch", "regard", "transformers", "onnx"))  # importing them fails
import onnxruntime, tokenizers
folder, text = sys.argv[1:]
encoding = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json").encode(text)
feed = {"input_ids": [encoding.ids], "attention_mask": [encoding.attention_mask], "token_type_ids": [encoding.type_ids]}
labels = json.load(open(f"{folder}/config.json"))["id2label"]
for name in ("model", "model_quantized"):
    session = onnxruntime.InferenceSession(f"{folder}/onnx/{name}.onnx")
    print(json.dumps(session.run(["logits"], feed)[0].tolist()), len(labels))
"""


def test_a_folder_opens_with_onnxruntime_alone(exported_folder: Path) -> None:
    text = word_text(9)
    done = fork_server.run("-c", ALONE, exported_folder, text, check=True)
    model = regard.load(exported_folder, device="cpu")
    ids = model.require_tokenizer().encode(text).ids
    expected = model.outputs([ids], segments=[[0] * len(ids)])[0].logits
    assert expected is not None
    for line, tolerance in zip(done.stdout.splitlines(), (1e-4, 0.5), strict=True):
        logits, labels = line.rsplit(" ", 1)
        assert np.allclose(json.loads(logits), expected.numpy(), atol=tolerance)
        assert int(labels) == 3


def test_progress_names_the_file_that_is_written_next(exported: OnnxExport, export_steps: list[Progress]) -> None:
    assert [step.values["file"] for step in export_steps] == [file.name for file in exported.files]
    assert export_steps[0].done == 0 < export_steps[1].done < (export_steps[1].total or 0)


@pytest.mark.parametrize("name", ["tiny-elmo", "tiny-gpt2", "tiny-t5"])
def test_only_encoders_are_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Only encoders such as BERT can"):
        write_onnx_files(random_checkpoint(name).network, tmp_path)


def test_a_wrong_file_is_refused(exported_folder: Path) -> None:
    network = random_checkpoint("tiny-bert", {"sequence": 3}).network
    assert isinstance(network, Transformer)
    network.get_parameter("heads.sequence.output.weight").data *= 2
    graph = encoder_graph(padded_copy(network))
    with pytest.raises(RegardError, match="does not compute what torch computes"):
        check_parity(graph, exported_folder / "onnx" / "model.onnx")


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
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
