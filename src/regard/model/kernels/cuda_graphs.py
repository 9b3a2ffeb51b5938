"""CUDA graphs: record the kernel launches of a function once, then replay them as one launch.

A small batch on a large GPU is bound by the host, which launches a hundred kernels one by one. A CUDA graph records
them once for fixed shapes and replays them without the host. `CudaGraph` is the recorder that everything here uses:
`GraphedForward` (forward passes), `TokenStepper` in decode_graphs.py (decoding steps) and the training step.

`GraphedForward` rounds the shapes of a batch up (`Ragged.fixed`), so that few recordings serve every batch; no padding
token exists, and the extra rows are cut off the result.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from regard.model.kernels.dispatch import runs_flat
from regard.model.transformer import Transformer
from regard.ragged import Ragged

SIZES_PER_OCTAVE = 16  # sizes between two powers of two, so that at most a sixteenth is filler
TILE = 128  # queries that the kernel processes at a time
MAX_GRAPH_TOKENS = 16384  # above this the GPU is the bottleneck on any host, and batches run without a recording
MAX_RECORDINGS = 64  # the least recently used is dropped first


@contextmanager
def side_stream() -> Iterator[None]:
    """Run on a second CUDA stream, as the runs before a recording must."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    torch.cuda.current_stream().wait_stream(side)


@contextmanager
def _other_streams() -> Iterator[None]:
    """Backward passes run on another stream than the passes before, on purpose: torch does not warn of it here."""
    name = "set_warn_on_accumulate_grad_stream_mismatch"  # not in every version of torch
    warn = getattr(torch.autograd.graph, name, lambda _: None)
    warn(False)
    try:
        yield
    finally:
        warn(True)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class CudaGraph:
    """A function of no arguments, recorded as a CUDA graph.

    It works as follows:
    1. `warm_up` (the function itself if not given) runs `runs` times on a side stream, so that nothing is allocated or
       compiled for the first time while recording.
    2. `restore` undoes what these runs changed.
    3. The function runs once more and is recorded; `result` holds the tensors that it returned.

    `replay` runs the recorded kernels again on the same tensors: copy new inputs into them first. Recordings that
    share a `pool` share memory.
    """

    def __init__(
        self,
        function: Callable[[], Any],
        *,
        runs: int,
        warm_up: Callable[[], Any] | None = None,
        restore: Callable[[], None] | None = None,
        pool: Any = None,
    ) -> None:
        with side_stream(), _other_streams():
            for _ in range(runs):
                (warm_up or function)()
        if restore is not None:
            restore()
        self.graph = torch.cuda.CUDAGraph()
        # Collected garbage may hold an older graph, and freeing that one would end this recording.
        with _no_garbage_collection(), _other_streams(), torch.cuda.graph(self.graph, pool=pool):
            self.result = function()

    @property
    def pool(self) -> Any:
        """The memory pool of the recording."""
        return self.graph.pool()

    def replay(self) -> None:
        """Run the recorded kernels."""
        self.graph.replay()


def supports_graphs(network: Transformer) -> bool:
    """Whether every launch of the network can be recorded: on a GPU, with a kernel that never waits for the host."""
    first, config = next(network.parameters()), network.config
    plain = config.positions.kind not in ("relative", "alibi") and config.attention.select == "soft"
    flat = first.is_cuda and runs_flat(first.dtype, config.head_width, first.device.index or 0)
    return flat and plain and config.attention.score != "additive"


@dataclass(frozen=True)
class GraphShape:
    """The sizes of a recorded batch."""

    tokens: int
    sequences: int
    max_length: int
    segments: bool

    @classmethod
    def exact(cls, batch: Ragged) -> GraphShape:
        return cls(batch.tokens, len(batch), batch.max_length, batch.segments is not None)

    @classmethod
    def rounded(cls, batch: Ragged, max_tokens: int | None) -> GraphShape:
        """Sizes rounded up. The kernel works in tiles of 128 queries, and starts one for every empty sequence too."""
        max_length = -(-batch.max_length // TILE) * TILE
        max_length = max_length if max_tokens is None else max(min(max_length, max_tokens), batch.max_length)
        tokens = round_up(batch.tokens, TILE)
        rows = round_up(len(batch) + -(-(tokens - batch.tokens) // max_length), 8)
        rows += 8 if rows == tokens else 0  # the first axis of a result must tell tokens from sequences
        return cls(tokens, rows, max_length, batch.segments is not None)


def round_up(size: int, min_step: int) -> int:
    """Round up to one of sixteen sizes per power of two, which are at least `min_step` apart."""
    step = max(min_step, (1 << max(size, 1).bit_length()) // (2 * SIZES_PER_OCTAVE))
    return -(-max(size, 1) // step) * step


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded forward pass, and the tensor with all its inputs: one copy feeds it."""

    graph: CudaGraph
    numbers: Tensor


class GraphedForward:
    """Calls `run(batch)` through recordings, one per rounded shape. The batch may be on the CPU.

    The result is a copy, which later calls do not change. Batches above `MAX_GRAPH_TOKENS` run without a recording.
    """

    def __init__(self, run: Callable[[Ragged], Any], *, device: torch.device, max_tokens: int | None = None) -> None:
        self.run = run
        self.device = device
        self.max_tokens = max_tokens
        self.recordings: OrderedDict[GraphShape, Recording] = OrderedDict()
        self.pool: Any = None

    def __call__(self, batch: Ragged) -> Any:
        batch = batch.to("cpu")  # its shape is fixed there without waiting for the GPU
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
        return _cut(recording.graph.result, batch, shape)

    def _record(self, numbers: Tensor, shape: GraphShape) -> Recording:
        graph = CudaGraph(lambda: self.run(unpack_batch(numbers, shape)), runs=2, pool=self.pool)
        self.pool = self.pool or graph.pool
        return Recording(graph, numbers)


def pack_batch(batch: Ragged, *, pinned: bool = False) -> Tensor:
    """All numbers of a batch in one tensor; in pinned memory, so that the host need not wait for the copy."""
    parts = [batch.ids, batch.positions, batch.bounds.long()]
    parts += [] if batch.segments is None else [batch.segments]
    out = torch.empty(sum(part.numel() for part in parts), dtype=torch.int64, pin_memory=pinned)
    return torch.cat(parts, out=out)


def unpack_batch(numbers: Tensor, shape: GraphShape) -> Ragged:
    """The batch of `pack_batch` again, as views of its numbers."""
    sizes = [shape.tokens, shape.tokens, shape.sequences + 1] + ([shape.tokens] if shape.segments else [])
    ids, positions, bounds, *segments = numbers.split(sizes)
    return Ragged(ids, bounds.int(), positions, shape.max_length, segments[0] if segments else None)


def _cut(result: Any, batch: Ragged, shape: GraphShape) -> Any:
    """The rows of the batch itself, copied out of the recording."""
    if isinstance(result, Tensor):
        return result[: batch.tokens if result.shape[0] == shape.tokens else len(batch)].clone()
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return replace(result, **{name: _cut(value, batch, shape) for name, value in values.items() if value is not None})
