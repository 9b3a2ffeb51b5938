"""The key-value cache of decoding: keys and values of earlier tokens, so that a step computes the new token only.

Tokens stay ragged; only the cache has one slot per position and sequence, since sequences grow at different lengths.
Shapes: B sequences, C slots, N new tokens, M tokens so far, G key-value heads, H heads, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.errors import InputError, pluralize
from regard.model.kernels.layout import Layout, SlotLayout
from regard.model.positions import check_length
from regard.ragged import Ragged


@dataclass(eq=False)
class LayerCache:
    """The keys and values of one layer. In memory the slots of a head are contiguous, as the kernel reads them."""

    k_BCGK: Tensor | None = None
    v_BCGK: Tensor | None = None
    memory: tuple[Tensor, Tensor] | None = None  # of the encoder's tokens, flat
    memory_slots: tuple[Tensor, Tensor] | None = None  # the same, one slot per position

    def extend(self, k_NGK: Tensor, v_NGK: Tensor, cache: Cache) -> tuple[Tensor, Tensor]:
        """Store the new keys and values; returns those of all tokens.

        They are flat in the first pass, then by slot, as the layout of the pass says.
        """
        self.k_BCGK = self._with_capacity(self.k_BCGK, k_NGK, cache)
        self.v_BCGK = self._with_capacity(self.v_BCGK, v_NGK, cache)
        self.k_BCGK[cache.rows, cache.positions] = k_NGK
        self.v_BCGK[cache.rows, cache.positions] = v_NGK
        if cache.is_first_pass:
            return k_NGK, v_NGK
        return self.k_BCGK, self.v_BCGK

    def _with_capacity(self, old: Tensor | None, new: Tensor, cache: Cache) -> Tensor:
        """The old tensor, copied into a larger one if the capacity has grown."""
        if old is not None and old.shape[1] >= cache.capacity:
            return old
        kv_heads, width = new.shape[1:]
        larger_BCGK = new.new_zeros(len(cache), kv_heads, cache.capacity, width).transpose(1, 2)
        if old is not None:
            larger_BCGK[:, : old.shape[1]] = old
        return larger_BCGK

    def memory_keys_values(self, cache: Cache | None) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory: flat in the first pass, then by slot."""
        assert self.memory is not None
        if cache is None or cache.is_first_pass or cache.memory is None:
            return self.memory
        if self.memory_slots is None:
            self.memory_slots = (_in_slots(self.memory[0], cache.memory), _in_slots(self.memory[1], cache.memory))
        return self.memory_slots

    def select(self, rows: Tensor, moved: tuple[Tensor, Tensor, Tensor] | None) -> None:
        """Reorder the sequences; with `moved` (to, from, slot), in place, by copying only these slots."""
        if self.k_BCGK is None or self.v_BCGK is None:
            return
        if moved is None:
            self.k_BCGK, self.v_BCGK = (
                values.transpose(1, 2)[rows].transpose(1, 2) for values in (self.k_BCGK, self.v_BCGK)
            )
        elif moved[0].numel():
            to, source, slot = moved
            for values in (self.k_BCGK, self.v_BCGK):
                values[to, slot] = values[source, slot]

    def select_memory(self, index: Tensor) -> None:
        if self.memory is not None:
            self.memory, self.memory_slots = (self.memory[0][index], self.memory[1][index]), None


def _in_slots(flat_MGK: Tensor, memory: Ragged) -> Tensor:
    """As many slots per sequence as the longest has tokens, flat."""
    if memory.tokens == len(memory) * memory.max_length:
        return flat_MGK
    slots = flat_MGK.new_zeros(len(memory), memory.max_length, *flat_MGK.shape[1:])
    slots[memory.sequence_ids, memory.positions] = flat_MGK
    return slots.flatten(0, 1)


@dataclass(eq=False)
class Cache:
    """The caches of all layers, for growing sequences: the first pass reads the prompts, later ones a token of each."""

    layers: list[LayerCache]
    lengths: Tensor  # (B,) int64, tokens so far
    capacity: int = 0
    max_length: int = 0
    is_first_pass: bool = True  # the current pass is the first
    rows: Tensor = field(default_factory=lambda: torch.empty(0))
    positions: Tensor = field(default_factory=lambda: torch.empty(0))
    memory_MD: Tensor | None = None
    memory: Ragged | None = None
    sequences_per_source: int = 1  # adjacent sequences that share one source (beams)
    equal_lengths: bool = True  # whether all sequences are equally long
    memory_layout: SlotLayout | None = None
    fixed_shapes: bool = False  # the pass is recorded: `max_length` slots are attended to, and lengths change in place

    @classmethod
    def empty(cls, *, layers: int, sequences: int, device: torch.device, capacity: int = 0) -> Cache:
        lengths = torch.zeros(sequences, dtype=torch.int64, device=device)
        return cls([LayerCache() for _ in range(layers)], lengths, capacity)

    def __len__(self) -> int:
        return self.lengths.numel()

    def advance(self, batch: Ragged, *, limit: int | None = None) -> Ragged:
        """Reserve slots for the tokens of `batch`; returns it with their positions in the whole sequences."""
        if len(batch) != len(self):
            raise InputError(f"the cache holds {pluralize(len(self), 'sequence')}, but the step brings {len(batch)}.")
        if self.fixed_shapes:
            self.rows, self.positions = torch.arange(len(self), device=self.lengths.device), self.lengths.clone()
            self.lengths.add_(1)
            self.is_first_pass, self.equal_lengths = False, False
            if self.memory_layout is not None:
                self.memory_layout.score_masks.clear()  # those of another recording do not belong to it
            return Ragged(batch.ids, batch.bounds, self.positions, 1, batch.segments)
        if self.max_length == 0:
            self._start(batch, limit)
        else:
            self._grow(batch, limit)
        if self.max_length > self.capacity:
            self.capacity = max(self.max_length, 2 * self.capacity, 16)
        return Ragged(batch.ids, batch.bounds, self.positions, batch.max_length, batch.segments)

    def _start(self, batch: Ragged, limit: int | None) -> None:
        """The first pass reads all of the prompts."""
        if 0 in (new := batch.lengths.tolist()):
            raise InputError(f"sequence {new.index(0)} has no token; the first pass needs at least one per sequence.")
        check_length(batch.max_length, limit)
        self.rows, self.positions = batch.sequence_ids, batch.positions
        self.lengths, self.max_length = batch.lengths, batch.max_length
        self.equal_lengths = bool((self.lengths == self.max_length).all())
        self.is_first_pass = True

    def _grow(self, batch: Ragged, limit: int | None) -> None:
        """Later passes read one token of each sequence."""
        if batch.max_length != 1 or batch.tokens != len(batch):
            raise InputError(f"{batch.tokens} tokens for {len(batch)} sequences; a later pass needs one of each.")
        check_length(self.max_length + 1, limit)
        self.rows, self.positions = torch.arange(len(self), device=self.lengths.device), self.lengths
        self.lengths = self.lengths + 1
        self.max_length += 1
        self.is_first_pass = False

    def layout(self, own: Layout) -> Layout:
        """Queries of the new tokens, keys of all."""
        if self.is_first_pass:
            return own
        return SlotLayout(
            own.q_bounds, own.k_bounds, 1, self.max_length, self.lengths, self.capacity, self.equal_lengths
        )

    def cross_layout(self, own: Layout) -> Layout:
        """Queries of the new tokens, keys of the memory; reused by all steps of one token per sequence."""
        assert self.memory is not None
        bounds, max_length = self.memory.bounds, self.memory.max_length
        if self.is_first_pass:
            return Layout(own.q_bounds, bounds, own.q_max_length, max_length)
        if self.memory_layout is None:
            queries = own.q_bounds[:: self.sequences_per_source]
            even = self.memory.tokens == len(self.memory) * max_length
            lengths = self.memory.lengths
            self.memory_layout = SlotLayout(
                queries, bounds, self.sequences_per_source, max_length, lengths, max_length, even
            )
        return self.memory_layout

    def repeat(self, count: int) -> None:
        """Repeat each sequence `count` times; the copies share one memory."""
        rows = torch.arange(len(self), device=self.lengths.device).repeat_interleave(count)
        for store in self.layers:
            store.select(rows, None)
        self.lengths, self.sequences_per_source, self.memory_layout = (
            self.lengths[rows],
            self.sequences_per_source * count,
            None,
        )

    def select(self, rows: Tensor, *, changed: Tensor | None = None) -> None:
        """Keep these sequences in this order; one may occur several times (beam search).

        `changed` is how many of the last tokens of each differ from the sequence that was in its row before; all of
        them if not given.
        """
        order, shared = rows.tolist(), self.sequences_per_source
        if self.memory is not None:
            self._select_memory([row // shared for row in order[::shared]], rows.device)
        moved = self._moved(rows, changed) if len(order) == len(self) else None
        for store in self.layers:
            store.select(rows, moved)
        lengths = self.lengths[rows]
        self.lengths = lengths if moved is None else self.lengths.copy_(lengths)  # recordings read this tensor
        self.max_length = int(lengths.max()) if len(self) else 0
        self.equal_lengths = bool((self.lengths == self.max_length).all())

    def _moved(self, rows: Tensor, new: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Slots whose tokens come from another row: target row, source row, slot."""
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
        slots = Ragged.from_flat(torch.arange(self.memory.tokens), self.memory.lengths.tolist())
        index = slots.select(order).ids.to(device)
        self.memory = self.memory.select(order)
        self.memory_MD = None if self.memory_MD is None else self.memory_MD[index]
        self.memory_layout = None
        for store in self.layers:
            store.select_memory(index)
