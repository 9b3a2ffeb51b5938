"""Keys and values of tokens already read, kept so that the next token costs one token.

The tokens themselves stay ragged; only this store has one slot a place, since its rows grow at different lengths.
Shapes: B sequences, C slots, N new tokens, M tokens seen so far, G key-value heads, H heads, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.errors import InputError, pluralize
from regard.model.kernels.layout import Layout, SlotLayout
from regard.model.positions import check_length
from regard.ragged import Ragged


@dataclass(eq=False)
class LayerCache:
    """One layer's keys and values. In memory each head has its slots in a row: it reads them one after the other."""

    k_BCGK: Tensor | None = None
    v_BCGK: Tensor | None = None
    memory: tuple[Tensor, Tensor] | None = None  # of the encoder's tokens, flat
    memory_slots: tuple[Tensor, Tensor] | None = None  # the same, one slot a place

    def extend(self, k_NGK: Tensor, v_NGK: Tensor, cache: Cache) -> tuple[Tensor, Tensor]:
        """Keep the new keys and values; return what the layout of the pass speaks of: those of all tokens, flat, or all
        slots where the pass brings one token a sequence."""
        self.k_BCGK = self._room(self.k_BCGK, k_NGK, cache)
        self.v_BCGK = self._room(self.v_BCGK, v_NGK, cache)
        self.k_BCGK[cache.rows, cache.positions] = k_NGK
        self.v_BCGK[cache.rows, cache.positions] = v_NGK
        if cache.is_first_pass:
            return k_NGK, v_NGK
        if cache.single_token:
            return self.k_BCGK, self.v_BCGK
        assert cache.flat_index is not None
        return self.k_BCGK[cache.flat_index], self.v_BCGK[cache.flat_index]

    def _room(self, kept: Tensor | None, new: Tensor, cache: Cache) -> Tensor:
        if kept is not None and kept.shape[1] >= cache.capacity:
            return kept
        groups, width = new.shape[1:]
        more_BCGK = new.new_zeros(len(cache), groups, cache.capacity, width).transpose(1, 2)
        if kept is not None:
            more_BCGK[:, : kept.shape[1]] = kept
        return more_BCGK

    def memory_keys_values(self, cache: Cache | None) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory: flat, or in slots where the pass brings one token a sequence."""
        assert self.memory is not None
        if cache is None or not cache.single_token or cache.memory is None:
            return self.memory
        if self.memory_slots is None:
            self.memory_slots = (_in_slots(self.memory[0], cache.memory), _in_slots(self.memory[1], cache.memory))
        return self.memory_slots

    def select(self, rows: Tensor, moved: tuple[Tensor, Tensor, Tensor] | None) -> None:
        """Rows in a new order: in place where as many stay, of which only some slots `moved` (to, from, slot)."""
        if self.k_BCGK is None or self.v_BCGK is None:
            return
        if moved is None:
            self.k_BCGK, self.v_BCGK = (
                kept.transpose(1, 2)[rows].transpose(1, 2) for kept in (self.k_BCGK, self.v_BCGK)
            )
        elif moved[0].numel():
            to, source, slot = moved
            for kept in (self.k_BCGK, self.v_BCGK):
                kept[to, slot] = kept[source, slot]

    def select_memory(self, index: Tensor) -> None:
        if self.memory is not None:
            self.memory, self.memory_slots = (self.memory[0][index], self.memory[1][index]), None


def _in_slots(flat_MGK: Tensor, memory: Ragged) -> Tensor:
    """As many slots a sequence as the longest has tokens, laid flat."""
    if memory.tokens == len(memory) * memory.max_length:
        return flat_MGK
    slots = flat_MGK.new_zeros(len(memory), memory.max_length, *flat_MGK.shape[1:])
    slots[memory.sequence_ids, memory.positions] = flat_MGK
    return slots.flatten(0, 1)


@dataclass(eq=False)
class Cache:
    """All layers' stores of a batch of growing sequences."""

    layers: list[LayerCache]
    lengths: Tensor  # (B,) int64, tokens seen so far
    capacity: int = 0
    max_length: int = 0
    is_first_pass: bool = True  # nothing was seen before the pass that runs now
    single_token: bool = False  # the pass that runs now brings one token a sequence
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    positions: Tensor = field(default_factory=lambda: torch.empty(0))
    flat_index: tuple[Tensor, Tensor] | None = None  # rows and slots of every token, where the pass needs them flat
    memory_MD: Tensor | None = None
    memory: Ragged | None = None
    sequences_per_source: int = 1  # sequences, one after the other, that look at the same memory
    equal_lengths: bool = True  # all sequences are equally long
    memory_layout: SlotLayout | None = None
    fixed_shapes: bool = (
        False  # the pass is recorded: `longest` slots are looked at, and lengths are counted where they lie
    )

    @classmethod
    def empty(cls, *, layers: int, sequences: int, device: torch.device, capacity: int = 0) -> Cache:
        lengths = torch.zeros(sequences, dtype=torch.int64, device=device)
        return cls([LayerCache() for _ in range(layers)], lengths, capacity)

    def __len__(self) -> int:
        return self.lengths.numel()

    def advance(self, batch: Ragged, *, limit: int | None = None) -> Ragged:
        """Make room for the tokens of `batch` and return it with their places in the whole sequences."""
        if len(batch) != len(self):
            raise InputError(f"the cache holds {pluralize(len(self), 'sequence')}, but the step brings {len(batch)}.")
        if self.fixed_shapes:
            self.rows, self.positions = torch.arange(len(self), device=self.lengths.device), self.lengths.clone()
            self.lengths.add_(1)
            self.is_first_pass, self.single_token, self.equal_lengths = False, True, False
            if self.memory_layout is not None:
                self.memory_layout.score_masks.clear()  # those of another recording do not belong to it
            return Ragged(batch.ids, batch.bounds, self.positions, 1, batch.segments)
        fresh, lengths = self.max_length == 0, self.lengths + batch.lengths
        single = batch.max_length == 1 and batch.tokens == len(batch) and not fresh
        if not single and 0 in (new := batch.lengths.tolist()):
            raise InputError(f"sequence {new.index(0)} brings no token; a step needs at least one of each sequence.")
        longest = self.max_length + 1 if single else int(lengths.max()) if len(self) else 0
        check_length(longest, limit)
        if single:
            self.rows, self.positions = torch.arange(len(self), device=self.lengths.device), self.lengths
        else:
            self.rows = batch.sequence_ids
            self.positions = batch.positions + self.lengths[self.rows]
            self.equal_lengths = bool((lengths == longest).all())
        self.lengths, self.max_length, self.is_first_pass, self.single_token = lengths, longest, fresh, single
        if not fresh and not single:
            self.flat_index = self._all()
        if self.max_length > self.capacity:
            self.capacity = max(self.max_length, 2 * self.capacity, 16)
        return Ragged(batch.ids, batch.bounds, self.positions, batch.max_length, batch.segments)

    def _all(self) -> tuple[Tensor, Tensor]:
        """Rows and slots of every token seen, laid flat."""
        rows = torch.repeat_interleave(torch.arange(len(self), device=self.lengths.device), self.lengths)
        starts = torch.repeat_interleave(self.lengths.cumsum(0) - self.lengths, self.lengths)
        return rows, torch.arange(rows.numel(), device=rows.device) - starts

    def layout(self, own: Layout) -> Layout:
        """Queries of the new tokens, keys of all."""
        if self.is_first_pass:
            return own
        if self.single_token:
            return SlotLayout(
                own.q_bounds, own.k_bounds, 1, self.max_length, self.lengths, self.capacity, self.equal_lengths
            )
        bounds = F.pad(self.lengths.cumsum(0), (1, 0)).to(own.q_bounds.dtype)
        return Layout(own.q_bounds, bounds, own.q_max_length, self.max_length)

    def cross_layout(self, own: Layout) -> Layout:
        """Queries of the new tokens, keys of the memory that they share; the same for all steps of one token."""
        assert self.memory is not None
        bounds, longest = self.memory.bounds, self.memory.max_length
        queries = own.q_bounds if self.sequences_per_source == 1 else own.q_bounds[:: self.sequences_per_source]
        if not self.single_token:
            return Layout(queries, bounds, self.sequences_per_source * own.q_max_length, longest)
        if self.memory_layout is None:
            even = self.memory.tokens == len(self.memory) * longest
            lengths = self.memory.lengths
            self.memory_layout = SlotLayout(queries, bounds, self.sequences_per_source, longest, lengths, longest, even)
        return self.memory_layout

    def repeat(self, count: int) -> None:
        """Each sequence `count` times, one after the other; the memory is kept once and shared."""
        rows = torch.arange(len(self), device=self.lengths.device).repeat_interleave(count)
        for store in self.layers:
            store.select(rows, None)
        self.lengths, self.sequences_per_source, self.memory_layout = (
            self.lengths[rows],
            self.sequences_per_source * count,
            None,
        )

    def select(self, rows: Tensor, *, sequences_per_source: int | None = None, changed: Tensor | None = None) -> None:
        """Keep these sequences in this order; one may be named several times (beam search).

        Of those that share a memory, as many stay together, or `share` of them. `new` says how many of the last tokens
        of each differ from what was in its place before; all of them where it is not told.
        """
        order, before = rows.tolist(), self.sequences_per_source
        self.sequences_per_source = before if sequences_per_source is None else sequences_per_source
        if self.memory is not None:
            self._select_memory([row // before for row in order[:: self.sequences_per_source]], rows.device)
        self.memory_layout = None if self.sequences_per_source != before else self.memory_layout
        moved = self._moved(rows, changed) if len(order) == len(self) else None
        for store in self.layers:
            store.select(rows, moved)
        lengths = self.lengths[rows]
        self.lengths = lengths if moved is None else self.lengths.copy_(lengths)  # where recordings look for them
        self.max_length = int(lengths.max()) if len(self) else 0
        self.equal_lengths = bool((self.lengths == self.max_length).all())

    def _moved(self, rows: Tensor, new: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Slots whose tokens come from another row: where to, where from, which."""
        lengths = self.lengths[rows]
        count = lengths if new is None else torch.minimum(new, lengths)
        count = torch.where(rows == torch.arange(len(rows), device=rows.device), 0, count)
        to = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), count)
        start = (lengths - count)[to] - (count.cumsum(0) - count)[to]
        return to, rows[to], start + torch.arange(len(to), device=rows.device)

    def _select_memory(self, order: list[int], device: torch.device) -> None:
        assert self.memory is not None
        if order == list(range(len(self.memory))):
            return
        places = Ragged.from_flat(torch.arange(self.memory.tokens), self.memory.lengths.tolist())
        index = places.select(order).ids.to(device)
        self.memory = self.memory.select(order)
        self.memory_MD = None if self.memory_MD is None else self.memory_MD[index]
        self.memory_layout = None
        for store in self.layers:
            store.select_memory(index)

    def rewind(self, lengths: Tensor) -> None:
        """Forget what lies beyond these lengths."""
        self.lengths, self.max_length = lengths, int(lengths.max())
        self.equal_lengths = bool((lengths == self.max_length).all())
