"""Write an encoder as ONNX files, check them against torch, and quantize them to int8."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import InputError, MissingExtra, RegardError
from regard.export.graphs import BATCH, LENGTH, Graph, encoder_graph
from regard.export.int8_linear import int8_layers
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
TRACE, QUANTIZE = 2.0, 0.6  # seconds for one layer of minilm on one core; about, for the time left


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
    progress: OnProgress | None = None,
) -> tuple[OnnxFile, ...]:
    """Write `onnx/model.onnx` into a folder, and with `int8` also `onnx/model_quantized.onnx`.

    progress: called before each step with `Progress("export", done, total)` in units of about a second; its `values`
        have the name of the file.
    Raises InputError for a network that is no encoder, RegardError where ONNX computes something else than torch.
    """
    require_onnx()
    if not isinstance(network, Transformer) or network.decoder is not None:
        raise InputError(
            f"this network, a {type(network).__name__} of kind {network.config.kind}, cannot be written as ONNX. "
            "Only encoders such as BERT can."
        )
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    scales = smoothing_scales(network, int8_layers(network)) if int8 else {}
    graph = encoder_graph(padded_copy(network))
    exact, quantized = folder / FOLDER / "model.onnx", folder / FOLDER / "model_quantized.onnx"
    layers = network.config.layers
    total = round((TRACE + QUANTIZE * int8) * layers)

    def begin(path: Path, seconds: float) -> None:
        if progress is not None:
            progress(Progress("export", round(seconds), total, {"file": f"{FOLDER}/{path.name}"}))

    begin(exact, 0.0)
    trace(graph, exact)
    files = [_described(graph, exact, check_parity(graph, exact), int8=False)]
    if int8:
        begin(quantized, TRACE * layers)
        quantize(exact, quantized, scales)
        files.append(_described(graph, quantized, difference(graph, quantized), int8=True))
    return tuple(files)


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
    shapes = tuple({0: BATCH, 1: LENGTH} for _ in graph.inputs)
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
def difference(graph: Graph, path: Path) -> float:
    """The largest difference between the file and torch on other shapes than those it was traced with.

    It is relative to the largest value of an output, where that is above 1.
    """
    inputs = other_inputs(graph)
    expected = graph.module(*inputs.values())
    feed = {name: value.numpy() for name, value in inputs.items()}
    actual = open_session(path).run(list(graph.outputs), feed)
    return max(
        float(np.abs(ours.numpy() - theirs).max(initial=0)) / max(float(ours.abs().max()), 1.0)
        for ours, theirs in zip(expected, actual, strict=True)
    )


def other_inputs(graph: Graph) -> dict[str, Tensor]:
    """Random inputs of another length, one of the sequences padded."""
    generator = torch.Generator().manual_seed(1)
    shape = (3, 5)
    vocabulary = int(graph.inputs["input_ids"].max()) + 1
    mask = torch.ones(shape, dtype=torch.int64)
    mask[0, -2:] = 0
    values = {"input_ids": torch.randint(vocabulary, shape, generator=generator), "attention_mask": mask}
    if "token_type_ids" in graph.inputs:
        values["token_type_ids"] = torch.randint(2, shape, generator=generator)
    return values


def _described(graph: Graph, path: Path, largest: float, *, int8: bool) -> OnnxFile:
    size = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    return OnnxFile(f"{FOLDER}/{path.name}", size, tuple(graph.inputs), graph.outputs, largest, int8)
