"""Decoding steps of one token per sequence, recorded as CUDA graphs.

One step of a small network is a few hundred kernel launches, and a large GPU waits for the host to make them. Here all
tensors keep their shapes and addresses: the cached keys and values, the lengths, the new ids. Attention reads a fixed
number of cache slots, of which the unfilled ones are masked. That number doubles when it is too small, so that a few
recordings serve a whole decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from regard.errors import InputError
from regard.model.cache import Cache
from regard.model.kernels.cuda_graphs import CudaGraph
from regard.model.positions import check_length
from regard.ragged import Ragged

MIN_SLOTS = 128  # cache slots that the first recording attends to


class StepNetwork(Protocol):
    """A network that reads new tokens with a cache."""

    def step(self, batch: Ragged, cache: Cache) -> Tensor: ...


def single_token_batch(ids_B: Tensor) -> Ragged:
    """A batch of one token per sequence."""
    bounds = torch.arange(ids_B.numel() + 1, dtype=torch.int32, device=ids_B.device)
    return Ragged(ids_B, bounds, torch.zeros_like(ids_B), 1)


class TokenStepper:
    """Calls the network on one new token per sequence. The result is valid until the next call.

    With `fixed`, shapes are fixed and a GPU records the step; a CPU runs the same code without a recording, so that
    tests can compare the results.
    """

    def __init__(self, network: StepNetwork, cache: Cache, *, fixed: bool, limit: int | None = None) -> None:
        self.network = network
        self.cache = cache
        self.fixed = fixed
        self.limit = limit
        self.attended_slots = 0
        self.ids = self.logits = torch.empty(0)
        self.recorded_tensors: tuple[object, ...] = ()
        self.replay: Callable[[], None] = self._run

    def __call__(self, ids_B: Tensor) -> Tensor:
        if not self.fixed:
            return self.network.step(single_token_batch(ids_B), self.cache)
        cache = self.cache
        check_length(cache.max_length + 1, self.limit)
        if cache.max_length >= cache.capacity:
            raise InputError(f"all {cache.capacity} slots of the cache are filled. Create it with a larger capacity.")
        if cache.max_length >= self.attended_slots or not self._same():
            self._prepare(ids_B)
        self.ids.copy_(ids_B)
        self.replay()
        cache.max_length += 1
        return self.logits

    def _tensors(self) -> tuple[object, ...]:
        """The tensors that a recording reads and writes; they are replaced when sequences leave the batch."""
        first = self.cache.layers[0]
        return first.k_BCGK, first.memory, self.cache.lengths, self.cache.sequences_per_source

    def _same(self) -> bool:
        """Whether they are still those of the last recording, which keeps a reference, so that no address is reused."""
        return len(self.recorded_tensors) > 0 and all(
            one is other for one, other in zip(self.recorded_tensors, self._tensors(), strict=True)
        )

    def _prepare(self, ids_B: Tensor) -> None:
        cache = self.cache
        slots = MIN_SLOTS
        while slots <= cache.max_length:
            slots *= 2
        self.attended_slots = min(slots, cache.capacity, self.limit or cache.capacity)
        self.ids = ids_B.clone()
        cache.lengths = cache.lengths.clone()
        if ids_B.is_cuda:
            self._record()
        self.recorded_tensors = self._tensors()

    def _run(self) -> None:
        """One step in fixed shapes: lengths are counted on the device, and the host never waits."""
        cache = self.cache
        max_length = cache.max_length
        cache.fixed_shapes = True
        cache.max_length = self.attended_slots
        self.logits = self.network.step(single_token_batch(self.ids), cache)
        cache.fixed_shapes = False
        cache.max_length = max_length

    def _record(self) -> None:
        """Record one step; the warm-up runs are undone by setting the lengths back."""
        before = self.cache.lengths.clone()

        def warm_up() -> None:
            self._run()
            self.cache.lengths.copy_(before)

        self.replay = CudaGraph(self._run, runs=2, warm_up=warm_up).replay
