"""int8 files: which products are integers, and how layers are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.predict.models import random_checkpoint

from regard.export import quantize_onnx
from regard.export.int8_linear import int8_layers
from regard.export.quantize_onnx import quantize
from regard.export.smoothing import smoothing_scales


def operations(path: Path) -> Counter[str]:
    import onnx

    return Counter(node.op_type for node in onnx.load(str(path)).graph.node)


def test_products_of_the_blocks_are_integers(exported_folder: Path) -> None:
    layers = int8_layers(random_checkpoint("tiny-bert").network)
    counted = operations(exported_folder / "onnx" / "model_quantized.onnx")
    assert counted["MatMulInteger"] == len(layers)
    assert counted["ReduceMax"] == sum(name.endswith("down") for name in layers)
    assert counted["MatMul"] >= 2  # attention, and the head
    assert counted["FastGelu"] == sum(name.endswith("up") for name in layers)
    assert counted["Erf"] == 0


def test_layers_can_be_left_out(exported_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_checkpoint("tiny-bert", {"sequence": 3}).network
    layers = int8_layers(network)
    target = tmp_path / "model_quantized.onnx"
    monkeypatch.setattr(quantize_onnx, "needs_reduced_range", lambda: True)
    quantize(
        exported_folder / "onnx" / "model.onnx", target, smoothing_scales(network, layers), exclude=[next(iter(layers))]
    )
    assert operations(target)["MatMulInteger"] == len(layers) - 1
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
