"""int8 layers and files: scales, integer products and faster operations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.predict.models import random_checkpoint

from regard.export.fast_operations import use_fast_gelu, use_fast_norms
from regard.export.int8_linear import int8_layers
from regard.export.quantize_onnx import quantize
from regard.export.smoothing import smoothing_scales

# Scales per input dimension leave the product unchanged and make its factors even.


def test_every_layer_has_a_scale_for_each_input() -> None:
    network = random_checkpoint("tiny-bert").network
    layers = int8_layers(network)
    scales = smoothing_scales(network, layers)
    assert scales.keys() == layers.keys()
    for name, layer in layers.items():
        assert scales[name].shape == (layer.in_features,)
        assert bool((scales[name] > 0).all())
        assert bool(scales[name].isfinite().all())
    assert not any(layer._forward_pre_hooks for layer in layers.values())


def test_an_encoder_decoder_has_scales_in_both_parts() -> None:
    network = random_checkpoint("tiny-marian").network
    scales = smoothing_scales(network, int8_layers(network))
    assert {name.split(".")[0] for name in scales} == {"encoder", "decoder"}


def test_a_large_dimension_gets_a_large_scale() -> None:
    network = random_checkpoint("tiny-bert").network
    layers = int8_layers(network)
    norm = network.get_submodule("encoder.layers.0.attention_norm")
    with torch.no_grad():
        norm.get_parameter("weight")[3] *= 100
    scales = smoothing_scales(network, layers)
    assert scales["encoder.layers.0.feedforward.up"].argmax() == 3


# int8 files: which products are integers, and how layers are left out.


def operations(path: Path) -> Counter[str]:
    import onnx

    return Counter(node.op_type for node in onnx.load(str(path)).graph.node)


def test_a_table_that_is_also_the_weight_of_a_head_stays_in_fp32(tmp_path: Path) -> None:
    """An int8 copy of it would only make the file larger."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], "lookup"),
        helper.make_node("Gemm", ["x", "table"], ["logits"], "head", transB=1),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["tokens"])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["tokens", 20])]
    graph = helper.make_graph(nodes, "tied", inputs, outputs, [numpy_helper.from_array(table, "table")])
    source, target = tmp_path / "model.onnx", tmp_path / "model_quantized.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(source))
    quantize(source, target, {})
    ids = np.array([3, 5, 7])
    logits = onnxruntime.InferenceSession(target).run(["logits"], {"ids": ids})[0]
    np.testing.assert_allclose(logits, table[ids] @ table.T, rtol=1e-4, atol=1e-5)


def test_products_of_the_blocks_are_integers(exported_folder: Path) -> None:
    layers = int8_layers(random_checkpoint("tiny-bert").network)
    counted = operations(exported_folder / "onnx" / "model_quantized.onnx")
    assert counted["MatMulInteger"] == len(layers)
    assert counted["ReduceMax"] == sum(name.endswith("down") for name in layers)
    assert counted["MatMul"] >= 2  # attention, and the head
    assert counted["FastGelu"] == sum(name.endswith("up") for name in layers)
    assert counted["Erf"] == 0


# Faster operations in int8 files: the same numbers.


def run(model: Any, x: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"x": x})[0]
    return result


@pytest.mark.parametrize("has_bias", [True, False])
def test_norms_and_gelu_stay_the_same(has_bias: bool) -> None:
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper

    numbers = np.random.default_rng(0)
    constants = {"w": numbers.normal(size=8), "b": numbers.normal(size=8), "root": 2**0.5, "one": 1.0, "half": 0.5}
    norm = helper.make_node(
        "LayerNormalization", ["x", "w", *(["b"] if has_bias else [])], ["n"], "n", axis=-1, epsilon=1e-3
    )
    gelu = [
        helper.make_node("Div", ["n", "root"], ["d"], "d"),
        helper.make_node("Erf", ["d"], ["e"], "e"),
        helper.make_node("Add", ["e", "one"], ["a"], "a"),
        helper.make_node("Mul", ["half", "a"], ["m"], "m"),
        helper.make_node("Mul", ["n", "m"], ["y"], "y"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 8]) for name in "xy"]
    tensors = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()]
    graph = helper.make_graph([norm, *gelu], "test", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = numbers.normal(2, 3, (5, 8)).astype(np.float32)
    before = run(model, x)
    use_fast_gelu(model)
    use_fast_norms(model)
    kinds = {node.op_type for node in model.graph.node}
    assert {"FastGelu", "InstanceNormalization"} <= kinds
    assert not {"LayerNormalization", "Erf"} & kinds
    assert "root" not in {tensor.name for tensor in model.graph.initializer}
    assert np.allclose(run(model, x), before, atol=2e-3)


def test_int8_files_have_no_slow_norms(exported_folder: Path) -> None:
    import onnx

    kinds = [node.op_type for node in onnx.load(str(exported_folder / "onnx" / "model_quantized.onnx")).graph.node]
    assert kinds.count("InstanceNormalization") > 2
    assert "LayerNormalization" not in kinds
