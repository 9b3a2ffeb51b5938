"""Steps of one token a sequence, recorded on a GPU and replayed.

A step of a small network is a few hundred launches, and a large GPU waits for the host to make them. All tensors keep
their shapes and places here: the store of keys and values, the lengths, the new ids. What is not filled yet is masked,
up to a `reach` that grows in octaves, so that a few recordings serve a whole decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from regard.errors import InputError
from regard.model.cache import Cache
from regard.model.positions import check_length
from regard.ragged import Ragged

MIN_SLOTS = 128  # slots that are looked at, at first


class StepNetwork(Protocol):
    """A network that steps."""

    def step(self, batch: Ragged, cache: Cache) -> Tensor: ...


def single_token_batch(ids_B: Tensor) -> Ragged:
    """One token a sequence."""
    bounds = torch.arange(ids_B.numel() + 1, dtype=torch.int32, device=ids_B.device)
    return Ragged(ids_B, bounds, torch.zeros_like(ids_B), 1)


class TokenStepper:
    """Calls the network on one new token a sequence. The result is valid until the next call.

    `fixed` shapes are for recording; without a GPU they run as they are, which tests that they say the same.
    """

    def __init__(self, network: StepNetwork, cache: Cache, *, fixed: bool, limit: int | None = None) -> None:
        self.network, self.cache, self.fixed, self.limit = network, cache, fixed, limit
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
            raise InputError(f"the cache has {cache.capacity} slots, and all are filled; begin with a larger capacity.")
        if cache.max_length >= self.attended_slots or not self._same():
            self._prepare(ids_B)
        self.ids.copy_(ids_B)
        self.replay()
        cache.max_length += 1
        return self.logits

    def _tensors(self) -> tuple[object, ...]:
        """What a recording reads and writes; others are there after sequences have left."""
        first = self.cache.layers[0]
        return first.k_BCGK, first.memory, self.cache.lengths, self.cache.sequences_per_source

    def _same(self) -> bool:
        """Whether they are those of the last recording; they are held on to, so that no other takes their place."""
        return len(self.recorded_tensors) > 0 and all(
            one is other for one, other in zip(self.recorded_tensors, self._tensors(), strict=True)
        )

    def _prepare(self, ids_B: Tensor) -> None:
        cache = self.cache
        reach = MIN_SLOTS
        while reach <= cache.max_length:
            reach *= 2
        self.attended_slots = min(reach, cache.capacity, self.limit or cache.capacity)
        self.ids = ids_B.clone()
        cache.lengths = cache.lengths.clone()
        if ids_B.is_cuda:
            self._record()
        self.recorded_tensors = self._tensors()

    def _run(self) -> None:
        """One step in fixed shapes: the cache counts on the device, and the host is asked nothing."""
        cache, longest = self.cache, self.cache.max_length
        cache.fixed_shapes, cache.max_length = True, self.attended_slots
        self.logits = self.network.step(single_token_batch(self.ids), cache)
        cache.fixed_shapes, cache.max_length = False, longest

    def _record(self) -> None:
        """Run it twice beside the main stream, as recording asks for, forget that, and record."""
        before = self.cache.lengths.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._run()
                self.cache.lengths.copy_(before)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._run()
        self.replay = graph.replay
