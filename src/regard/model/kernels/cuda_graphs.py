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

from regard.model.kernels.dispatch import runs_flat
from regard.model.transformer import Transformer
from regard.ragged import Ragged

SIZES_PER_OCTAVE = 16  # sizes between a power of two and the next, so that at most a sixteenth is filling
TILE = 128  # queries the kernel takes at a time
MAX_GRAPH_TOKENS = 6144  # tokens from which the GPU, not the host, is what one waits for; such batches run as they are
MAX_RECORDINGS = 64  # recordings kept, the least used given up first


def supports_graphs(network: Transformer) -> bool:
    """Whether every launch of the network can be recorded: on a GPU, with the kernel that asks the host nothing."""
    first, config = next(network.parameters()), network.config
    plain = config.positions.kind not in ("relative", "alibi") and config.attention.select == "soft"
    flat = first.is_cuda and runs_flat(first.dtype, config.head_width, first.device.index or 0)
    return flat and plain and config.attention.score != "additive"


@dataclass(frozen=True)
class GraphShape:
    """Rounded sizes of a batch."""

    tokens: int
    sequences: int
    max_length: int
    segments: bool

    @classmethod
    def exact(cls, batch: Ragged) -> GraphShape:
        return cls(batch.tokens, len(batch), batch.max_length, batch.segments is not None)

    @classmethod
    def rounded(cls, batch: Ragged, max_tokens: int | None) -> GraphShape:
        """The next sizes up. The kernel works in tiles of 128 queries and starts one for every empty sequence too."""
        longest = -(-batch.max_length // TILE) * TILE
        longest = longest if max_tokens is None else max(min(longest, max_tokens), batch.max_length)
        tokens = round_up(batch.tokens, TILE)
        rows = round_up(len(batch) + -(-(tokens - batch.tokens) // longest), 8)
        rows += 8 if rows == tokens else 0  # so that a result's first axis says whether it is of tokens or of sequences
        return cls(tokens, rows, longest, batch.segments is not None)


def round_up(size: int, min_step: int) -> int:
    """The next of sixteen sizes an octave that are at least `least` apart."""
    step = max(min_step, (1 << max(size, 1).bit_length()) // (2 * SIZES_PER_OCTAVE))
    return -(-max(size, 1) // step) * step


@dataclass(frozen=True, eq=False)
class Recording:
    """A graph with the numbers it reads, all in one tensor so that one copy feeds it, and the tensors it writes."""

    graph: torch.cuda.CUDAGraph
    numbers: Tensor
    result: Any


class GraphedForward:
    """Calls `run(batch)` through recordings. The batch may lie on the host; the result is the caller's own."""

    def __init__(self, run: Callable[[Ragged], Any], *, device: torch.device, max_tokens: int | None = None) -> None:
        self.run, self.device, self.max_tokens = run, device, max_tokens
        self.recordings: OrderedDict[GraphShape, Recording] = OrderedDict()
        self.pool: Any = None

    def __call__(self, batch: Ragged) -> Any:
        batch = batch.to("cpu")  # where its shape is fixed without waiting for the GPU
        if batch.tokens > MAX_GRAPH_TOKENS:
            numbers = pack_batch(batch, pinned=True).to(self.device, non_blocking=True)
            return self.run(unpack_batch(numbers, GraphShape.exact(batch)))
        shape = GraphShape.rounded(batch, self.max_tokens)
        filled = batch.fixed(tokens=shape.tokens, sequences=shape.sequences, max_length=shape.max_length)
        numbers = pack_batch(filled, pinned=True)
        if shape not in self.recordings:
            self.recordings[shape] = self._record(numbers.to(self.device), shape)
            if len(self.recordings) > MAX_RECORDINGS:
                self.recordings.popitem(last=False)
        self.recordings.move_to_end(shape)
        recording = self.recordings[shape]
        recording.numbers.copy_(numbers, non_blocking=True)
        recording.graph.replay()
        return _cut(recording.result, batch, shape)

    def _record(self, numbers: Tensor, shape: GraphShape) -> Recording:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.run(unpack_batch(numbers, shape))
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            result = self.run(unpack_batch(numbers, shape))
        self.pool = self.pool or graph.pool()
        return Recording(graph, numbers, result)


def pack_batch(batch: Ragged, *, pinned: bool = False) -> Tensor:
    """All numbers of a batch in one tensor; pinned, so that the host need not wait for the copy."""
    parts = [batch.ids, batch.positions, batch.bounds.long()]
    parts += [] if batch.segments is None else [batch.segments]
    out = torch.empty(sum(part.numel() for part in parts), dtype=torch.int64, pin_memory=pinned)
    return torch.cat(parts, out=out)


def unpack_batch(numbers: Tensor, shape: GraphShape) -> Ragged:
    """The batch whose numbers these are, as views."""
    sizes = [shape.tokens, shape.tokens, shape.sequences + 1] + ([shape.tokens] if shape.segments else [])
    ids, positions, bounds, *segments = numbers.split(sizes)
    return Ragged(ids, bounds.int(), positions, shape.max_length, segments[0] if segments else None)


def _cut(result: Any, batch: Ragged, shape: GraphShape) -> Any:
    """The rows of the batch itself, copied out of the recording."""
    if isinstance(result, Tensor):
        return result[: batch.tokens if result.shape[0] == shape.tokens else len(batch)].clone()
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return replace(result, **{name: _cut(value, batch, shape) for name, value in values.items() if value is not None})
