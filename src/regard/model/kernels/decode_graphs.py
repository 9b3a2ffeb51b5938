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

LEAST = 128  # slots that are looked at, at first


class Stepping(Protocol):
    """A network that steps."""

    def step(self, batch: Ragged, cache: Cache) -> Tensor: ...


def one_each(ids_B: Tensor) -> Ragged:
    """One token a sequence."""
    bounds = torch.arange(ids_B.numel() + 1, dtype=torch.int32, device=ids_B.device)
    return Ragged(ids_B, bounds, torch.zeros_like(ids_B), 1)


class Steps:
    """Calls the network on one new token a sequence. The result is valid until the next call.

    `fixed` shapes are for recording; without a GPU they run as they are, which tests that they say the same.
    """

    def __init__(self, network: Stepping, cache: Cache, *, fixed: bool, limit: int | None = None) -> None:
        self.network, self.cache, self.fixed, self.limit = network, cache, fixed, limit
        self.reach = 0
        self.ids = self.logits = torch.empty(0)
        self.held: tuple[object, ...] = ()
        self.replay: Callable[[], None] = self._run

    def __call__(self, ids_B: Tensor) -> Tensor:
        if not self.fixed:
            return self.network.step(one_each(ids_B), self.cache)
        cache = self.cache
        check_length(cache.longest + 1, self.limit)
        if cache.longest >= cache.capacity:
            raise InputError(f"the cache has {cache.capacity} slots, and all are filled; begin with a larger capacity.")
        if cache.longest >= self.reach or not self._same():
            self._prepare(ids_B)
        self.ids.copy_(ids_B)
        self.replay()
        cache.longest += 1
        return self.logits

    def _tensors(self) -> tuple[object, ...]:
        """What a recording reads and writes; others are there after sequences have left."""
        first = self.cache.stores[0]
        return first.k_BCGK, first.memory, self.cache.lengths, self.cache.share

    def _same(self) -> bool:
        """Whether they are those of the last recording; they are held on to, so that no other takes their place."""
        return len(self.held) > 0 and all(one is other for one, other in zip(self.held, self._tensors(), strict=True))

    def _prepare(self, ids_B: Tensor) -> None:
        cache = self.cache
        reach = LEAST
        while reach <= cache.longest:
            reach *= 2
        self.reach = min(reach, cache.capacity, self.limit or cache.capacity)
        self.ids = ids_B.clone()
        cache.lengths = cache.lengths.clone()
        if ids_B.is_cuda:
            self._record()
        self.held = self._tensors()

    def _run(self) -> None:
        """One step in fixed shapes: the cache counts on the device, and the host is asked nothing."""
        cache, longest = self.cache, self.cache.longest
        cache.fixed, cache.longest = True, self.reach
        self.logits = self.network.step(one_each(self.ids), cache)
        cache.fixed, cache.longest = False, longest

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
