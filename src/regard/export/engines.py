"""Which engine runs a network: torch in fp32 or half precision, or int8 products of ONNX Runtime or torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from regard.checkpoint.files import read_json
from regard.checkpoint.folder import Checkpoint
from regard.device import cpu_features, int8_support
from regard.errors import FolderError, InputError, RegardError, did_you_mean, setting
from regard.foreign import path_inside
from regard.model.linear import pack_weights
from regard.model.network import Network

ENGINES = ("auto", "torch", "int8")
INT8_FILE = "onnx/model_quantized.onnx"
RECORD = "engine"  # key of run.json: {"name": "int8", "exclude": [layers that stay in fp32]}
RUN = "run.json"


@dataclass(frozen=True, eq=False)
class Engine:
    """A network that is ready for inference, and what computes it."""

    name: str  # "torch", "int8" or "onnx int8"
    network: Network
    notice: str | None = None  # why it is not the engine that was asked for
    measured: dict[str, float] = field(default_factory=dict)  # milliseconds of each int8 engine, see engine_times.py


def check_engine(name: str) -> None:
    """Raise InputError if there is no engine of that name."""
    if name not in ENGINES:
        raise InputError(f'{setting("engine")} "{name}" is not known.{did_you_mean(name, ENGINES)}')


def resolve_engine(engine: str, folder: Path | None, device: str) -> str:
    """What "auto" means: torch on a GPU; on a CPU what `regard compress` recorded in the folder, else torch."""
    check_engine(engine)
    if engine == "int8" and device != "cpu":
        raise InputError(
            f"{setting('engine', engine)} runs on the CPU, but the model is on a GPU. Use {setting('device', 'cpu')}, "
            f"or {setting('engine', 'torch')} with {setting('dtype', 'bf16')}."
        )
    if engine != "auto":
        return engine
    return str(recorded_engine(folder).get("name", "torch")) if device == "cpu" else "torch"


def open_engine(checkpoint: Checkpoint, folder: Path | None, engine: str) -> Engine:
    """The network of a checkpoint on an engine; `folder` may hold ONNX files and what `regard compress` recorded."""
    network = checkpoint.network
    engine = resolve_engine(engine, folder, next(network.parameters()).device.type)
    if engine == "int8":
        return _int8_engine(network, folder, recorded_engine(folder).get("exclude", ()))
    pack_weights(network)  # the network runs more often than its weights change
    return Engine("torch", network)


def recorded_engine(folder: Path | None) -> dict[str, Any]:
    """What run.json says about the engine; empty if it says nothing."""
    if folder is None or not path_inside(folder, RUN).is_file():
        return {}
    record = read_json(folder, RUN).get(RECORD)
    if record is None:
        return {}
    if not isinstance(record, dict) or record.get("name") not in ENGINES[1:]:
        raise FolderError(f'{folder / RUN}: "{RECORD}" is {record!r:.80}, expected one of {", ".join(ENGINES[1:])}.')
    return record


def _int8_engine(network: Network, folder: Path | None, exclude: Collection[str]) -> Engine:
    """ONNX Runtime from the weights, where the network fits; else an exported file; else torch."""
    support = int8_support()
    if support == "none":
        features = ", ".join(cpu_features()) or "none of dotprod, i8mm, avx2, vnni"
        return _fp32_engine(network, f"this CPU has no fast int8 products ({features}); computing in fp32.")
    exported = _exported_int8_engine(network, folder)
    if exported is not None:
        return exported
    try:
        engine = _made_int8_engine(network, support, exclude)
    except InputError:
        raise
    except RegardError as error:
        return _fp32_engine(network, f"{error} Computing in fp32.")
    if support == "reduced":
        return replace(engine, notice="this CPU has no VNNI instructions: int8 products have 7 bits in place of 8.")
    return engine


def _made_int8_engine(network: Network, support: str, exclude: Collection[str]) -> Engine:
    """An engine made from the weights: of ONNX Runtime and torch the one that is faster here."""
    from regard.export.engine_times import faster_engine
    from regard.export.int8_encoder import can_run_int8_encoder, open_int8_encoder
    from regard.export.int8_linear import int8_network
    from regard.model.transformer import Transformer

    reduce_range = support == "reduced"
    makers: dict[str, Callable[[], Network]] = {}
    if can_run_int8_encoder(network):
        assert isinstance(network, Transformer)
        makers["onnx int8"] = partial(open_int8_encoder, network, exclude=exclude, reduce_range=reduce_range)
    makers["int8"] = partial(int8_network, network, reduce_range=reduce_range, exclude=exclude)
    if len(makers) == 1 or not isinstance(network, Transformer):
        return Engine("int8", makers["int8"]())
    name, times = faster_engine(network, makers)
    return Engine(name, makers[name](), measured={} if times is None else times.ms)


def _fp32_engine(network: Network, notice: str) -> Engine:
    pack_weights(network)
    return Engine("torch", network, notice)


def _exported_int8_engine(network: Network, folder: Path | None) -> Engine | None:
    """The int8 file of the folder, for an encoder that ONNX Runtime cannot run from its weights."""
    from regard.export.int8_encoder import can_run_int8_encoder
    from regard.export.session import OnnxTransformer, open_session
    from regard.model.transformer import Transformer

    if folder is None or not path_inside(folder, INT8_FILE).is_file():
        return None
    if not isinstance(network, Transformer) or network.decoder is not None or can_run_int8_encoder(network):
        return None
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    return Engine("onnx int8", OnnxTransformer(network, open_session(path_inside(folder, INT8_FILE))))
