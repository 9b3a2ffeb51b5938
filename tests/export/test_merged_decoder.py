"""Both steps of a decoder in one file compute what the two files compute."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.predict.models import random_checkpoint, word_text, word_tokenizer

from regard.export.onnx_files import OnnxFile, write_onnx_files

NAMES = ("encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, OnnxFile]]:
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("merged")
    written = write_onnx_files(random_checkpoint("tiny-marian").network, folder, int8=True)
    return folder, {file.name: file for file in written}


def test_every_file_is_close_to_torch(files: tuple[Path, dict[str, OnnxFile]]) -> None:
    _, by_name = files
    assert set(by_name) == {f"onnx/{name}{suffix}.onnx" for name in NAMES for suffix in ("", "_quantized")}
    for file in by_name.values():
        assert file.max_difference < (0.05 if file.int8 else 1e-4)


def test_weights_are_stored_once(files: tuple[Path, dict[str, OnnxFile]]) -> None:
    import onnx

    folder, by_name = files
    merged = by_name["onnx/decoder_model_merged.onnx"]
    assert merged.inputs[-1] == "use_cache_branch"
    assert "encoder_hidden_states" in merged.inputs
    sizes = {
        name: sum(
            int(np.prod(tensor.dims)) for tensor in onnx.load(str(folder / f"onnx/{name}.onnx")).graph.initializer
        )
        for name in NAMES
    }
    assert sizes["decoder_model_merged"] < 1.1 * sizes["decoder_model"]


def test_the_cache_of_the_encoder_is_passed_on(files: tuple[Path, dict[str, OnnxFile]]) -> None:
    import onnxruntime

    folder, _ = files
    session = onnxruntime.InferenceSession(str(folder / "onnx" / "decoder_model_merged.onnx"))
    sides = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 2, "encoder_sequence_length": 3}
    feed = {}
    for item in session.get_inputs():
        shape = [sides.get(side, side) for side in item.shape]
        feed[item.name] = np.ones(shape, {"tensor(float)": np.float32, "tensor(bool)": bool}.get(item.type, np.int64))
    names = [item.name for item in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, feed), strict=True))
    assert outputs["present.0.decoder.key"].shape[2] == 3
    assert np.array_equal(outputs["present.0.encoder.key"], feed["past_key_values.0.encoder.key"])


def test_the_documented_code_translates(
    files: tuple[Path, dict[str, OnnxFile]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = files
    tokenizer = word_tokenizer(special=True)
    tokenizer.save(folder)
    (folder / "config.json").write_text(json.dumps({"decoder_start_token_id": 0, "eos_token_id": -1}))
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    code = re.findall(r"```\n(import json\n.*?)```", page, re.DOTALL)[0]
    code = code.replace("runs/translator-onnx", folder.as_posix()).replace("the small cat sleeps", word_text(4))
    names: dict[str, list[int]] = {}
    exec(compile(code, "docs/export.md", "exec"), names)
    assert len(names["ids"]) == 51
    assert capsys.readouterr().out.endswith("\n")
