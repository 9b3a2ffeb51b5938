"""Write a network as ONNX files, check them against torch, and quantize them to int8."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import InputError, MissingExtra, RegardError
from regard.export.graphs import EncoderModule, Graph, graphs
from regard.export.int8_linear import int8_layers
from regard.export.merged_decoder import CONDITION, FIRST, MERGED, NEXT, merge_decoders
from regard.export.padded import padded_copy
from regard.export.quantize_onnx import quantize, quiet
from regard.export.session import open_session
from regard.export.smoothing import smoothing_scales
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.progress import OnProgress, Progress

OPSET = 18
TOLERANCE = 1e-4  # largest accepted difference to torch, relative to the largest output
FOLDER = "onnx"
QUANTIZED = "_quantized"
TRACE, QUANTIZE, MERGE = 2.0, 0.6, 0.4  # seconds for one layer of minilm on one core; about, for the time left


@dataclass(frozen=True)
class OnnxFile:
    """One ONNX file: its size, its inputs and outputs, and its largest difference to torch on random inputs."""

    name: str  # such as onnx/model.onnx
    bytes: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    max_difference: float
    int8: bool = False


@dataclass(frozen=True)
class OnnxExport:
    """The result of an export."""

    folder: str
    files: tuple[OnnxFile, ...] = field(default=())

    def json(self) -> dict[str, Any]:
        return {
            "folder": self.folder,
            "files": [
                {**vars(file), "inputs": list(file.inputs), "outputs": list(file.outputs)} for file in self.files
            ],
        }


def write_onnx_files(
    network: Network,
    folder: Path,
    *,
    int8: bool = False,
    exclude: Collection[str] = (),
    progress: OnProgress | None = None,
) -> tuple[OnnxFile, ...]:
    """Write `onnx/*.onnx` into a folder, and with `int8` also `onnx/*_quantized.onnx`.

    exclude: layers that stay in fp32 (names of `int8_layers`). progress: called before each step with
    `Progress("export", done, total)` in units of about a second; its `values` have the name of the file.
    Raises InputError for a network that is no Transformer, RegardError where ONNX computes something else than torch.
    """
    require_onnx()
    if not isinstance(network, Transformer):
        raise InputError(f"a {type(network).__name__} cannot be written as ONNX; only Transformers can.")
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    scales = smoothing_scales(network, int8_layers(network)) if int8 else {}
    all_graphs = graphs(padded_copy(network))
    steps = _Steps(all_graphs, network.config.layers, int8, progress)
    files = []
    for graph in all_graphs:
        path = folder / FOLDER / f"{graph.file}.onnx"
        steps.begin(path, TRACE)
        trace(graph, path)
        files.append(_described(graph, path, check_parity(graph, path), int8=False))
        if int8:
            target = path.with_name(f"{graph.file}{QUANTIZED}.onnx")
            steps.begin(target, QUANTIZE)
            quantize(path, target, scales, exclude=exclude)
            files.append(_described(graph, target, difference(graph, target), int8=True))
    by_file = {graph.file: graph for graph in all_graphs}
    if NEXT in by_file:
        for suffix in ("", QUANTIZED) if int8 else ("",):
            steps.begin(folder / FOLDER / f"{MERGED}{suffix}.onnx", MERGE)
            files.append(_merge(by_file[FIRST], by_file[NEXT], folder / FOLDER, suffix))
    return tuple(files)


class _Steps:
    """Reports the steps of an export, each with its cost: about the seconds that it takes for one layer."""

    def __init__(self, all_graphs: Sequence[Graph], layers: int, int8: bool, progress: OnProgress | None) -> None:
        merged = any(graph.file == NEXT for graph in all_graphs)
        costs = (TRACE + QUANTIZE * int8) * len(all_graphs) + MERGE * merged * (1 + int8)
        self.layers, self.progress = layers, progress
        self.done, self.total = 0.0, costs * layers

    def begin(self, path: Path, cost: float) -> None:
        if self.progress is not None:
            values = {"file": f"{FOLDER}/{path.name}"}
            self.progress(Progress("export", round(self.done), round(self.total), values))
        self.done += cost * self.layers


def _merge(first: Graph, following: Graph, folder: Path, suffix: str) -> OnnxFile:
    """Write both steps of a decoder as one file, and compare both with torch."""
    path = folder / f"{MERGED}{suffix}.onnx"
    merge_decoders(folder / f"{FIRST}{suffix}.onnx", folder / f"{NEXT}{suffix}.onnx", path)
    empty = {name: value[:, :, :0] for name, value in other_inputs(following).items() if name.startswith("past")}
    states = {name: value for name, value in other_inputs(first).items() if name not in following.inputs}
    largest = max(
        difference(first, path, {**empty, CONDITION: torch.tensor([False])}),
        difference(following, path, {**states, CONDITION: torch.tensor([True])}),
    )
    if not suffix and not largest <= TOLERANCE:
        raise RegardError(f"{path.name} does not compute what torch computes: a difference of {largest:.2g}.")
    inputs = dict.fromkeys((*first.inputs, *following.inputs, CONDITION))
    size = path.stat().st_size
    return OnnxFile(f"{FOLDER}/{path.name}", size, tuple(inputs), first.outputs, largest, bool(suffix))


def require_onnx() -> None:
    """Raise MissingExtra unless the packages that write and run ONNX files are installed."""
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise MissingExtra("writing ONNX files", "onnx") from error
    del onnx, onnxruntime, onnxscript


def trace(graph: Graph, path: Path) -> None:
    """Write a module as an ONNX file with dynamic shapes."""
    shapes: Any = tuple(graph.shapes[name] for name in graph.inputs)
    if not isinstance(graph.module, EncoderModule):
        shapes = (shapes,)  # its forward takes *tensors
    try:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                graph.module,
                tuple(graph.inputs.values()),
                input_names=list(graph.inputs),
                output_names=list(graph.outputs),
                dynamic_shapes=shapes,
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
            assert program is not None
            program.save(str(path))
    except torch.onnx.errors.OnnxExporterError as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise RegardError(
            f"this network has an operation that ONNX lacks ({reason:.300}). Use the engine torch or int8 instead."
        ) from error


def check_parity(graph: Graph, path: Path) -> float:
    """The largest difference of the file to torch; raises RegardError if it is not a matter of rounding."""
    largest = difference(graph, path)
    if not largest <= TOLERANCE:
        raise RegardError(f"{path.name} does not compute what torch computes: a difference of {largest:.2g}.")
    return largest


@torch.inference_mode()
def difference(graph: Graph, path: Path, more_inputs: Mapping[str, Tensor] | None = None) -> float:
    """The largest difference between the file and torch on other shapes than those it was traced with.

    It is relative to the largest value of an output, where that is above 1. more_inputs: those that only the file has.
    """
    session = open_session(path)
    inputs = other_inputs(graph)
    expected = graph.module(*inputs.values())
    feed = {**inputs, **(more_inputs or {})}
    actual = session.run(list(graph.outputs), {name: value.numpy() for name, value in feed.items()})
    return max(
        float(np.abs(ours.numpy() - theirs).max(initial=0)) / max(float(ours.abs().max()), 1.0)
        for ours, theirs in zip(expected, actual, strict=True)
    )


def other_inputs(graph: Graph) -> dict[str, Tensor]:
    """Random inputs of other lengths, one of the sequences padded."""
    generator = torch.Generator().manual_seed(1)
    sizes = {"batch_size": 3, "sequence_length": 5, "past_sequence_length": 4, "encoder_sequence_length": 6}
    sizes["total_length"] = sizes["sequence_length"] + sizes["past_sequence_length"]
    results = {}
    for name, example in graph.inputs.items():
        shape = list(example.shape)
        for axis, symbol in graph.shapes[name].items():
            shape[axis] = sizes[symbol]
        if name.endswith("mask"):
            results[name] = torch.ones(shape, dtype=torch.int64)
            if graph.file in ("model", "encoder_model") and "total_length" not in graph.shapes[name].values():
                results[name][0, -2:] = 0
        elif example.dtype == torch.int64:
            high = 2 if name == "token_type_ids" else int(example.max()) + 1
            results[name] = torch.randint(high, shape, generator=generator)
        else:
            results[name] = torch.randn(shape, generator=generator)
    return results


def _described(graph: Graph, path: Path, largest: float, *, int8: bool) -> OnnxFile:
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    return OnnxFile(f"{FOLDER}/{path.name}", size, tuple(graph.inputs), graph.outputs, largest, int8)
