"""Which int8 engine is faster on this machine, ONNX Runtime or torch: measured once for each shape of network.

Each engine reads one text of 24 and one of 128 tokens a few times, which takes less than a second, and the shortest
times are kept in the user's cache folder. Speed depends on the shape of a network, not on its weights, so that all
models that were fine-tuned from one need a single measurement. `regard doctor` shows the measurements.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from regard.device import cpu_features
from regard.errors import RegardError, pluralize
from regard.model.network import Network
from regard.model.transformer import Transformer
from regard.ragged import Ragged
from regard.user_cache import user_cache

VERSION = 1  # of what is measured
LENGTHS = (24, 128)  # tokens
REPEATS = 4  # of which the shortest time counts
CLEARLY = 0.9  # the time of an engine that is clearly faster, relative to the preferred one
SMALL = 1 << 20  # parameters; the engines of smaller networks are not measured
MAX_FILES = 64


@dataclass(frozen=True)
class EngineTimes:
    """The milliseconds of each int8 engine for a shape of network: one text of 24 and one of 128 tokens, together."""

    shape: str  # such as "6 layers, width 384, 12 heads"
    threads: int
    ms: dict[str, float]  # by engine, the preferred one first

    @property
    def fastest(self) -> str:
        """The first engine, unless another one is clearly faster."""
        first = next(iter(self.ms))
        best = min(self.ms, key=lambda name: self.ms[name])
        return best if self.ms[best] < CLEARLY * self.ms[first] else first


def faster_engine(network: Transformer, engines: Mapping[str, Callable[[], Network]]) -> tuple[str, EngineTimes | None]:
    """The name of the engine to use, and its measurement; None for a small network, which gets the first engine."""
    if sum(parameter.numel() for parameter in network.parameters()) < SMALL or len(engines) < 2:
        return next(iter(engines)), None
    folder = user_cache("engines")
    if folder is None:  # every load would measure
        return next(iter(engines)), None
    path = folder / f"{_key(network)}.json"
    stored = _read(path)
    if stored is not None and stored.ms.keys() <= engines.keys():
        return stored.fastest, stored
    opened = _open_all(engines)
    if not opened:
        return next(iter(engines)), None
    times = EngineTimes(_shape(network), torch.get_num_threads(), measure(opened, network))
    with contextlib.suppress(OSError):  # a full disk
        part = path.with_name(f".{path.stem}.{os.getpid()}.part")
        part.write_text(json.dumps(asdict(times)))
        part.replace(path)
    return times.fastest, times


def _open_all(engines: Mapping[str, Callable[[], Network]]) -> dict[str, Network]:
    """The engines that this machine can run."""
    opened = {}
    for name, make in engines.items():
        with contextlib.suppress(RegardError):  # such as a build of torch without oneDNN
            opened[name] = make()
    return opened


@torch.inference_mode()
def measure(engines: Mapping[str, Network], network: Transformer) -> dict[str, float]:
    """The milliseconds of each engine: the sum over the lengths of the shortest of a few times."""
    limit = network.config.max_tokens or LENGTHS[-1]
    totals = dict.fromkeys(engines, 0.0)
    for length in sorted({min(length, limit) for length in LENGTHS}):
        batch = Ragged.from_flat(torch.arange(length) % network.config.vocabulary, [length])
        for name, engine in engines.items():
            assert isinstance(engine, Transformer)
            engine.read(batch)  # what is prepared once
            totals[name] += min(_milliseconds(engine, batch) for _ in range(REPEATS))
    return {name: round(total, 3) for name, total in totals.items()}


def _milliseconds(engine: Transformer, batch: Ragged) -> float:
    started = time.perf_counter()
    engine.read(batch)
    return 1000 * (time.perf_counter() - started)


def all_engine_times() -> list[EngineTimes]:
    """The measurements of this machine that are kept, the latest first."""
    folder = user_cache("engines")
    files = [] if folder is None else sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)
    return [times for path in files[:MAX_FILES] if (times := _read(path)) is not None]


def _read(path: Path) -> EngineTimes | None:
    """A measurement; None where there is none, or it is damaged."""
    try:
        content = json.loads(path.read_text())
        ms = {str(name): float(value) for name, value in content["ms"].items()}
        return EngineTimes(str(content["shape"]), int(content["threads"]), ms) if ms else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _shape(network: Transformer) -> str:
    config = network.config
    layers, heads = pluralize(config.layers, "layer"), pluralize(config.attention.heads, "head")
    return f"{layers}, width {config.width}, {heads}"


def _key(network: Transformer) -> str:
    """A digest of everything that the speed depends on."""
    shapes = [tuple(parameter.shape) for parameter in network.parameters()]
    machine = (platform.node(), platform.machine(), cpu_features(), torch.get_num_threads(), torch.__version__)
    return hashlib.sha256(f"{VERSION} {network.config} {shapes} {machine} {_runtime()}".encode()).hexdigest()[:32]


def _runtime() -> str:
    """The version of ONNX Runtime, without importing it."""
    try:
        return version("onnxruntime")
    except PackageNotFoundError:
        return "none"
