"""Keys and values of tokens already read, kept so that the next token costs one token.

The tokens themselves stay ragged; only this store has one slot a place, since its rows grow at different lengths.
Shapes: B sequences, C slots, N new tokens, M tokens seen so far, G key-value heads, H heads, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.errors import InputError
from regard.model.layout import Layout, Slots
from regard.model.positions import check_length
from regard.ragged import Ragged


@dataclass(eq=False)
class Store:
    """One layer's keys and values."""

    k_BCGK: Tensor | None = None
    v_BCGK: Tensor | None = None
    memory: tuple[Tensor, Tensor] | None = None  # of the encoder's tokens, flat

    def extend(self, k_NGK: Tensor, v_NGK: Tensor, cache: Cache) -> tuple[Tensor, Tensor]:
        """Keep the new keys and values; return what the layout of the pass speaks of: those of all tokens, flat."""
        self.k_BCGK = self._room(self.k_BCGK, k_NGK, cache)
        self.v_BCGK = self._room(self.v_BCGK, v_NGK, cache)
        self.k_BCGK[cache.rows, cache.places] = k_NGK
        self.v_BCGK[cache.rows, cache.places] = v_NGK
        if cache.fresh:
            return k_NGK, v_NGK
        if cache.single:
            return self.k_BCGK.flatten(0, 1), self.v_BCGK.flatten(0, 1)
        assert cache.seen is not None
        return self.k_BCGK[cache.seen], self.v_BCGK[cache.seen]

    def _room(self, kept: Tensor | None, new: Tensor, cache: Cache) -> Tensor:
        if kept is None:
            return new.new_zeros(len(cache), cache.capacity, *new.shape[1:])
        if kept.shape[1] < cache.capacity:
            return F.pad(kept, (0, 0, 0, 0, 0, cache.capacity - kept.shape[1]))
        return kept

    def select(self, rows: Tensor, memory_index: Tensor | None) -> None:
        if self.k_BCGK is not None and self.v_BCGK is not None:
            self.k_BCGK, self.v_BCGK = self.k_BCGK[rows], self.v_BCGK[rows]
        if self.memory is not None and memory_index is not None:
            self.memory = (self.memory[0][memory_index], self.memory[1][memory_index])


@dataclass(eq=False)
class Cache:
    """All layers' stores of a batch of growing sequences."""

    stores: list[Store]
    lengths: Tensor  # (B,) int64, tokens seen so far
    capacity: int = 0
    longest: int = 0
    fresh: bool = True  # nothing was seen before the pass that runs now
    single: bool = False  # the pass that runs now brings one token a sequence
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    places: Tensor = field(default_factory=lambda: torch.empty(0))
    seen: tuple[Tensor, Tensor] | None = None  # rows and slots of every token, where the pass needs them flat
    memory_MD: Tensor | None = None
    memory: Ragged | None = None

    @classmethod
    def empty(cls, *, layers: int, sequences: int, device: torch.device, capacity: int = 0) -> Cache:
        lengths = torch.zeros(sequences, dtype=torch.int64, device=device)
        return cls([Store() for _ in range(layers)], lengths, capacity)

    def __len__(self) -> int:
        return self.lengths.numel()

    def advance(self, batch: Ragged, *, limit: int | None = None) -> Ragged:
        """Make room for the tokens of `batch` and return it with their places in the whole sequences."""
        if len(batch) != len(self):
            raise InputError(f"the cache holds {len(self)} sequences, but the step brings {len(batch)}.")
        fresh, lengths = self.longest == 0, self.lengths + batch.lengths
        single = batch.longest == 1 and batch.tokens == len(batch) and not fresh
        if not single and 0 in (new := batch.lengths.tolist()):
            raise InputError(f"sequence {new.index(0)} brings no token; a step needs at least one of each sequence.")
        longest = self.longest + 1 if single else int(lengths.max()) if len(self) else 0
        check_length(longest, limit)
        self.rows = batch.owners
        self.places = batch.positions + self.lengths[self.rows]
        self.lengths, self.longest, self.fresh, self.single = lengths, longest, fresh, single
        if not fresh and not single:
            self.seen = self._all()
        if self.longest > self.capacity:
            self.capacity = max(self.longest, 2 * self.capacity, 16)
        return Ragged(batch.ids, batch.bounds, self.places, batch.longest, batch.segments)

    def _all(self) -> tuple[Tensor, Tensor]:
        """Rows and slots of every token seen, laid flat."""
        rows = torch.repeat_interleave(torch.arange(len(self), device=self.lengths.device), self.lengths)
        starts = torch.repeat_interleave(self.lengths.cumsum(0) - self.lengths, self.lengths)
        return rows, torch.arange(rows.numel(), device=rows.device) - starts

    def layout(self, own: Layout) -> Layout:
        """Queries of the new tokens, keys of all."""
        if self.fresh:
            return own
        if self.single:
            return Slots(own.q_bounds, own.k_bounds, 1, self.longest, self.lengths, self.capacity)
        bounds = F.pad(self.lengths.cumsum(0), (1, 0)).to(own.q_bounds.dtype)
        return Layout(own.q_bounds, bounds, own.q_longest, self.longest)

    def select(self, rows: Tensor) -> None:
        """Keep these sequences in this order; one may be named several times (beam search)."""
        memory_index = None
        if self.memory is not None:
            places = Ragged.from_flat(torch.arange(self.memory.tokens), self.memory.lengths.tolist())
            memory_index = places.select(rows.tolist()).ids.to(rows.device)
            self.memory = self.memory.select(rows.tolist())
            self.memory_MD = None if self.memory_MD is None else self.memory_MD[memory_index]
        for store in self.stores:
            store.select(rows, memory_index)
        self.lengths = self.lengths[rows]
        self.longest = int(self.lengths.max()) if len(self) else 0
