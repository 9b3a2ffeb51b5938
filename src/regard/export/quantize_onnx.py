"""Quantize an ONNX file to int8: integer weights, and activations that are rounded when the file runs.

In plain terms, it works as follows:

1. Input dimensions with large numbers are scaled down, and the weights that read them up; see smoothing.py.
2. The second layer of each feed-forward part also gets a scale per token, since some tokens have far larger numbers
   there than the others.
3. ONNX Runtime's dynamic quantization rounds the weights, with a scale per output channel, and embedding tables.
4. GELU and norms are replaced by faster operations; see fast_operations.py.

Norms, softmax and heads stay in fp32.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from regard.device import needs_reduced_range
from regard.export.fast_operations import use_fast_gelu, use_fast_norms

if TYPE_CHECKING:
    import onnx

PER_TOKEN = ".feedforward.down"  # layers whose tokens get a scale each
LAST_AXIS, TINY = "regard.last_axis", "regard.tiny"  # constants
WEIGHT = re.compile(r"(?:^|\.)(encoder\.layers\..+)\.weight")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the messages of the exporter, which are for its developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def quantize(source: Path, target: Path, scales: Mapping[str, Tensor]) -> None:
    """Write a file with int8 weights: matrix products of the blocks with a scale per channel, and embeddings.

    scales: see smoothing.py; the products of all other layers, heads among them, stay in fp32.
    """
    import onnx
    from onnx import numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(str(source))
    del model.graph.value_info[:]  # the quantizer's shape inference fails on them
    _split_gemm(model)
    constants = {LAST_AXIS: np.array([-1]), TINY: np.array(1e-12, np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    smoothed = _smooth(model, scales)
    others = [node.name for node in model.graph.node if node.op_type == "MatMul" and node.name not in smoothed]
    between = target.with_name(f"{target.stem}.smooth.onnx")
    try:
        onnx.save(model, str(between))
        with quiet():
            quantize_dynamic(
                str(between),
                str(target),
                op_types_to_quantize=["MatMul", "Gather"],
                per_channel=True,
                reduce_range=needs_reduced_range(),
                weight_type=QuantType.QInt8,
                nodes_to_exclude=[*others, *_shared_tables(model)],
                extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # where shape inference finds no type
            )
    finally:
        between.unlink(missing_ok=True)
    quantized = onnx.load(str(target))
    use_fast_gelu(quantized)
    use_fast_norms(quantized)
    onnx.save(quantized, str(target))


def _split_gemm(model: onnx.ModelProto) -> None:
    """Replace `Gemm` by a product and a sum, as the quantizer does.

    It would transpose the weight of a head also where that is the table of the embeddings. Such a weight is transposed
    when the file is loaded.
    """
    from onnx import helper, numpy_helper

    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    tables = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    transposed: set[str] = set()
    nodes: list[onnx.NodeProto] = []
    for node in [type(node).FromString(node.SerializeToString()) for node in model.graph.node]:
        if node.op_type != "Gemm" or node.input[1] not in weights:
            nodes.append(node)
            continue
        source, weight = node.input[:2]
        if any(item.name == "transB" and item.i for item in node.attribute):
            if weight in tables:
                turned_name = f"{node.name}_weight"
                nodes.append(helper.make_node("Transpose", [weight], [turned_name], turned_name, perm=[1, 0]))
                weight = turned_name
            elif weight not in transposed:
                turned = np.ascontiguousarray(numpy_helper.to_array(weights[weight]).T)
                weights[weight].CopyFrom(numpy_helper.from_array(turned, weight))
                transposed.add(weight)
        has_bias = len(node.input) > 2
        product = f"{node.output[0]}_product" if has_bias else node.output[0]
        nodes.append(helper.make_node("MatMul", [source, weight], [product], f"{node.name}_matmul"))
        if has_bias:
            nodes.append(helper.make_node("Add", [product, node.input[2]], node.output, f"{node.name}_bias"))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _shared_tables(model: onnx.ModelProto) -> list[str]:
    """Lookups in a table that is also the weight of a head: an int8 copy of it would only make the file larger."""
    heads = {name for node in model.graph.node if node.op_type != "Gather" for name in node.input}
    return [node.name for node in model.graph.node if node.op_type == "Gather" and node.input[0] in heads]


def _smooth(model: onnx.ModelProto, scales: Mapping[str, Tensor]) -> set[str]:
    """Multiply weights by their scales and divide their inputs by them; returns the names of these products.

    The inputs of `PER_TOKEN` layers are also divided by the largest value of each token, and the products multiplied
    by it: some tokens have far larger values there than the others.
    """
    from onnx import numpy_helper

    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    inverses: dict[str, str] = {}  # name of the inverse scale, by weight
    nodes: list[onnx.NodeProto] = []
    names = set()
    for node in [type(node).FromString(node.SerializeToString()) for node in model.graph.node]:
        layer = _layer_of(node.input[1]) if node.op_type == "MatMul" and node.input[1] in weights else None
        if layer is None or layer not in scales:
            nodes.append(node)
            continue
        weight = weights[node.input[1]]
        if weight.name not in inverses:
            scale_I = scales[layer].numpy()
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * scale_I[:, None], weight.name))
            inverses[weight.name] = f"{layer}.inverse"
            model.graph.initializer.append(numpy_helper.from_array(1 / scale_I, inverses[weight.name]))
        nodes += _scaled_product(node, inverses[weight.name], per_token=layer.endswith(PER_TOKEN))
        names.add(node.name)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return names


def _scaled_product(node: onnx.NodeProto, inverse: str, *, per_token: bool) -> list[onnx.NodeProto]:
    """A product with its input multiplied by `inverse`, and optionally divided by the largest value of each token."""
    from onnx import helper

    name, source, product = node.name, node.input[0], node.output[0]
    nodes = [helper.make_node("Mul", [source, inverse], [f"{name}_smoothed"], f"{name}_smooth")]
    node.input[0] = f"{name}_smoothed"
    if not per_token:
        return [*nodes, node]
    nodes += [
        helper.make_node("Abs", [f"{name}_smoothed"], [f"{name}_abs"], f"{name}_abs"),
        helper.make_node("ReduceMax", [f"{name}_abs", LAST_AXIS], [f"{name}_largest"], f"{name}_largest", keepdims=1),
        helper.make_node("Add", [f"{name}_largest", TINY], [f"{name}_scale"], f"{name}_scale"),
        helper.make_node("Reciprocal", [f"{name}_scale"], [f"{name}_factor"], f"{name}_factor"),
        helper.make_node("Mul", [f"{name}_smoothed", f"{name}_factor"], [f"{name}_scaled"], f"{name}_scaled"),
    ]
    node.input[0] = f"{name}_scaled"
    node.output[0] = f"{name}_product"
    last = helper.make_node("Mul", [f"{name}_product", f"{name}_scale"], [product], f"{name}_rescale")
    return [*nodes, node, last]


def _layer_of(weight: str) -> str | None:
    """The name of the layer of a weight, as `int8_layers` has it."""
    match = WEIGHT.search(weight)
    return None if match is None else match[1]
