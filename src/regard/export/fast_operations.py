"""Operations of an int8 file that ONNX Runtime computes faster than those of the exporter.

GELU with tanh (`FastGelu` of ONNX Runtime) takes a fraction of the time of the error function, and differs by less than
what the rounding to 8 bits changes. A norm over the last axis is the norm of an image with one channel per token
(`InstanceNormalization`): ONNX Runtime adds up its numbers in vectors, those of `LayerNormalization` one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

MICROSOFT = "com.microsoft"  # domain of operations of ONNX Runtime
ONE, ZERO = "regard.one", "regard.zero"  # constants


def use_fast_gelu(model: onnx.ModelProto) -> None:
    """Replace x * 0.5 * (1 + erf(x / sqrt 2)) by one operation."""
    from onnx import helper

    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    replaced: dict[str, onnx.NodeProto | None] = {}
    for node in [node for node in graph.node if node.op_type == "Erf"]:
        chain = [makers.get(node.input[0]), node]
        for expected in ("Add", "Mul", "Mul"):
            following = readers.get(chain[-1].output[0], []) if chain[-1] is not None else []
            chain.append(following[0] if len(following) == 1 and following[0].op_type == expected else None)
        divided, last = chain[0], chain[-1]
        if divided is None or divided.op_type != "Div" or last is None or divided.input[0] not in last.input:
            continue  # some other use of the error function
        name = f"{node.name}_gelu"
        replaced |= dict.fromkeys((one.name for one in chain if one is not None), None)
        replaced[last.name] = helper.make_node("FastGelu", [divided.input[0]], [last.output[0]], name, domain=MICROSOFT)
    if not replaced:
        return
    nodes = [replaced.get(node.name, node) for node in graph.node]
    _set_nodes(graph, [node for node in nodes if node is not None])
    if MICROSOFT not in {item.domain for item in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))


def use_fast_norms(model: onnx.ModelProto) -> None:
    """Replace the norms of flat tokens (N, D)."""
    from onnx import numpy_helper

    graph = model.graph
    widths = {tensor.name: tensor.dims[0] for tensor in graph.initializer if len(tensor.dims) == 1}
    nodes: list[onnx.NodeProto] = []
    used: set[int] = set()
    for node in graph.node:
        if node.op_type != "LayerNormalization" or node.input[1] not in widths:
            nodes.append(node)
            continue
        width = widths[node.input[1]]
        used.add(width)
        nodes += _fast_norm(node, width)
    if not used:
        return
    constants = {ONE: np.ones(1, np.float32), ZERO: np.zeros(1, np.float32)}
    for width in used:
        constants |= {f"regard.image{width}": np.array([-1, 1, width]), f"regard.flat{width}": np.array([-1, width])}
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    _set_nodes(graph, nodes)


def _fast_norm(norm: onnx.NodeProto, width: int) -> list[onnx.NodeProto]:
    """The norm of each token, then its weight, and its bias if it has one."""
    from onnx import helper

    name, source = norm.name, norm.input[0]
    epsilon = next((item.f for item in norm.attribute if item.name == "epsilon"), 1e-5)
    names = [f"{name}_{part}" for part in ("image", "norm", "flat")]
    nodes = [
        helper.make_node("Reshape", [source, f"regard.image{width}"], [names[0]], names[0]),
        helper.make_node("InstanceNormalization", [names[0], ONE, ZERO], [names[1]], names[1], epsilon=epsilon),
        helper.make_node("Reshape", [names[1], f"regard.flat{width}"], [names[2]], names[2]),
    ]
    has_bias = len(norm.input) > 2
    weighted = f"{name}_weighted" if has_bias else norm.output[0]
    nodes.append(helper.make_node("Mul", [names[2], norm.input[1]], [weighted], f"{name}_weight"))
    if has_bias:
        nodes.append(helper.make_node("Add", [weighted, norm.input[2]], [norm.output[0]], f"{name}_bias"))
    return nodes


def _set_nodes(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Replace the nodes of a graph, and remove constants that none of them reads."""
    copied = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copied)
    used = {name for node in copied for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)
