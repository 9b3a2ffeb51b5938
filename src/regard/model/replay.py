"""Running a network on a GPU by replaying recorded launches.

A small batch on a large GPU is bound by the host, which launches a hundred kernels one by one. A CUDA graph records
them once for a shape and replays them as one. Shapes are rounded up (`Ragged.fixed`), so that few recordings serve
every batch; no padding token exists, and the filling is cut off the result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from regard.model.transformer import Transformer
from regard.ragged import Ragged

STEPS = 8  # sizes between a power of two and the next, so that at most an eighth is filling
KEPT = 64  # recordings kept, the least used given up first


def replayable(network: Transformer) -> bool:
    """Whether every launch of the network can be recorded: on a GPU, with the kernel that asks the host nothing."""
    first = next(network.parameters())
    half = first.dtype in (torch.bfloat16, torch.float16)
    config = network.config
    plain = config.positions.kind not in ("relative", "alibi") and config.attention.select == "soft"
    return first.is_cuda and half and plain and config.attention.score != "additive" and config.head_width % 8 == 0


@dataclass(frozen=True)
class Shape:
    """Rounded sizes of a batch."""

    tokens: int
    sequences: int
    longest: int
    segments: bool

    @classmethod
    def of(cls, batch: Ragged, most: int | None) -> Shape:
        longest = max(64, 1 << (max(batch.longest, 1) - 1).bit_length())
        if most is not None:
            longest = max(min(longest, most), batch.longest)
        tokens = rounded(batch.tokens)
        rows = len(batch) + -(-(tokens - batch.tokens) // longest)
        return cls(tokens, 1 << (max(rows, 8) - 1).bit_length(), longest, batch.segments is not None)


def rounded(tokens: int) -> int:
    """The next of eight sizes an octave, at least 256 apart."""
    step = max(256, (1 << max(tokens, 1).bit_length()) // (2 * STEPS))
    return -(-max(tokens, 1) // step) * step


@dataclass(frozen=True, eq=False)
class Recording:
    graph: torch.cuda.CUDAGraph
    batch: Ragged  # the tensors the graph reads
    result: Any  # the tensors it writes


class Replay:
    """Calls `run(batch)` through recordings. The batch may lie on the host; the result is the caller's own."""

    def __init__(self, run: Callable[[Ragged], Any], *, device: torch.device, most: int | None = None) -> None:
        self.run, self.device, self.most = run, device, most
        self.recordings: OrderedDict[Shape, Recording] = OrderedDict()
        self.pool: Any = None

    def __call__(self, batch: Ragged) -> Any:
        batch = batch.to("cpu")  # where its shape is fixed without waiting for the GPU
        shape = Shape.of(batch, self.most)
        filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, longest=shape.longest)
        if shape not in self.recordings:
            self.recordings[shape] = self._record(filled.to(self.device))
            if len(self.recordings) > KEPT:
                self.recordings.popitem(last=False)
        self.recordings.move_to_end(shape)
        recording = self.recordings[shape]
        _copy(filled, recording.batch)
        recording.graph.replay()
        return _cut(recording.result, batch, shape)

    def _record(self, batch: Ragged) -> Recording:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.run(batch)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            result = self.run(batch)
        self.pool = self.pool or graph.pool()
        return Recording(graph, batch, result)


def _copy(source: Ragged, target: Ragged) -> None:
    for name in ("ids", "bounds", "positions", "segments"):
        tensor: Tensor | None = getattr(source, name)
        if tensor is not None:
            pinned = tensor.pin_memory() if tensor.device.type == "cpu" else tensor  # else the host would wait
            getattr(target, name).copy_(pinned, non_blocking=True)


def _cut(result: Any, batch: Ragged, shape: Shape) -> Any:
    """The rows of the batch itself, copied out of the recording."""
    if isinstance(result, Tensor):
        return result[: batch.tokens if result.shape[0] == shape.tokens else len(batch)].clone()
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return replace(result, **{name: _cut(value, batch, shape) for name, value in values.items() if value is not None})
