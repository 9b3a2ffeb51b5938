"""int8 files: which products are integers, and how layers are left out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.predict.models import random_checkpoint

from regard.export.int8_linear import int8_layers


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
