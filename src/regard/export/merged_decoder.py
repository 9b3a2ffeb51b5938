"""The first and the further steps of a decoder with an encoder in one ONNX file, as transformers.js reads it.

`decoder_model_merged.onnx` holds the graphs of `decoder_model.onnx` and `decoder_with_past_model.onnx`; the input
`use_cache_branch` says which of them runs. Weights that both have are stored once.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

FIRST, NEXT, MERGED = "decoder_model", "decoder_with_past_model", "decoder_model_merged"
CONDITION = "use_cache_branch"
BOOL = 9  # type of ONNX


def merge_decoders(first_file: Path, next_file: Path, target: Path) -> None:
    """Write the merged file. A first step gets caches of length 0; a further one returns the encoder's unchanged."""
    import onnx
    from onnx import helper

    models = [onnx.load(str(file)) for file in (first_file, next_file)]
    constants: dict[str, onnx.TensorProto] = {}
    first, following = (
        _branch(model.graph, prefix, constants) for model, prefix in zip(models, ("first.", "next."), strict=True)
    )
    inputs = {item.name: item for model in models for item in model.graph.input}
    outputs = {item.name: item for item in models[0].graph.output}
    for name in outputs.keys() - {item.name for item in models[1].graph.output}:
        past = name.replace("present", "past_key_values")
        following.node.append(helper.make_node("Identity", [past], [f"next.{name}"], f"next.{name}"))
    for branch, prefix in ((first, "first."), (following, "next.")):
        branch.output.extend(_renamed_output(outputs[name], f"{prefix}{name}") for name in outputs)
    condition = helper.make_tensor_value_info(CONDITION, BOOL, [1])
    choice = helper.make_node("If", [CONDITION], list(outputs), "choice", then_branch=following, else_branch=first)
    graph = helper.make_graph(
        [choice], "decoder", [*inputs.values(), condition], list(outputs.values()), list(constants.values())
    )
    opsets = {item.domain: item for model in models for item in model.opset_import}
    merged = helper.make_model(graph, opset_imports=list(opsets.values()), ir_version=models[0].ir_version)
    onnx.save(merged, str(target))


def _branch(graph: onnx.GraphProto, prefix: str, constants: dict[str, onnx.TensorProto]) -> onnx.GraphProto:
    """The nodes of a graph with a prefix to the names of their results; its constants are added to those of both."""
    from onnx import helper

    names = {item.name: item.name for item in graph.input} | {"": ""}
    for tensor in graph.initializer:
        content = f"{tensor.data_type}{list(tensor.dims)}".encode() + _content(tensor)
        names[tensor.name] = f"constant.{hashlib.sha256(content).hexdigest()[:24]}"
        if names[tensor.name] not in constants:
            copied = type(tensor).FromString(tensor.SerializeToString())
            copied.name = names[tensor.name]
            constants[copied.name] = copied
    nodes = []
    for node in graph.node:
        copied_node = type(node).FromString(node.SerializeToString())
        copied_node.name = f"{prefix}{node.name}"
        copied_node.input[:] = [names.get(name, f"{prefix}{name}") for name in node.input]
        copied_node.output[:] = [f"{prefix}{name}" if name else "" for name in node.output]
        nodes.append(copied_node)
    return helper.make_graph(nodes, prefix.rstrip("."), [], [])


def _content(tensor: onnx.TensorProto) -> bytes:
    from onnx import numpy_helper

    return bytes(numpy_helper.to_array(tensor).tobytes())


def _renamed_output(output: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, output.type.tensor_type.elem_type, None)
