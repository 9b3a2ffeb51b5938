"""Masks, and the positions of the queries and keys of each sequence in the flat tensors.

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one. True = may attend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from regard.model.kernels.cpu_tiles import Packing, pack_sequences

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(sequence, head, query position, key position) -> True where the query may attend to the key."""


@dataclass(frozen=True)
class Mask:
    """Which keys a query may attend to: a maximum distance to the left and to the right, and a function of the user.

    The last query has the position of the last key, also when earlier keys come from a cache.
    """

    left: int | None = None
    right: int | None = None
    function: MaskFunction | None = None

    @property
    def allows_all(self) -> bool:
        return self.left is None and self.right is None and self.function is None

    def allowed(self, row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Broadcast over the four indices; True = may attend."""
        allowed = key >= 0
        if self.left is not None:
            allowed = allowed & (query - key <= self.left)
        if self.right is not None:
            allowed = allowed & (key - query <= self.right)
        return allowed if self.function is None else allowed & self.function(row, head, query, key.clamp(min=0))


@dataclass(frozen=True, eq=False)
class Layout:
    """The bounds of the queries and keys of each sequence in the flat tensors."""

    q_bounds: Tensor
    k_bounds: Tensor
    q_max_length: int
    k_max_length: int

    @classmethod
    def for_self_attention(cls, bounds: Tensor, max_length: int) -> Layout:
        """Queries and keys of the same tokens."""
        return cls(bounds, bounds, max_length, max_length)

    def __len__(self) -> int:
        return self.q_bounds.numel() - 1

    def spans(self, row: int) -> tuple[slice, slice]:
        """The slices of the queries and of the keys of one sequence."""
        return slice(*self.q_edges[row : row + 2]), slice(*self.k_edges[row : row + 2])

    def keys_of(self, x_MGK: Tensor, row: int) -> Tensor:
        """(S, G, K) keys or values of one sequence."""
        return x_MGK[self.spans(row)[1]]

    @cached_property
    def q_edges(self) -> list[int]:
        edges: list[int] = self.q_bounds.tolist()
        return edges

    @cached_property
    def k_edges(self) -> list[int]:
        edges: list[int] = self.q_edges if self.k_bounds is self.q_bounds else self.k_bounds.tolist()
        return edges

    @cached_property
    def groups(self) -> list[SequenceGroup]:
        """Sequences grouped by their numbers of queries and keys, in the order in which the sizes first appear."""
        rows_by_size: dict[tuple[int, int], list[int]] = {}
        for row in range(len(self)):
            queries, keys = self.spans(row)
            size = (queries.stop - queries.start, keys.stop - keys.start)
            if all(size):  # without queries or keys there is nothing to compute
                rows_by_size.setdefault(size, []).append(row)
        return [
            SequenceGroup(rows, queries, keys, self.q_bounds.device) for (queries, keys), rows in rows_by_size.items()
        ]

    @property
    def is_self_attention(self) -> bool:
        """Whether queries and keys belong to the same tokens."""
        return self.k_bounds is self.q_bounds and type(self) is Layout

    def equal_lengths(self, tokens: int) -> bool:
        """Whether all sequences are equally long; computed from shapes, without waiting for the device."""
        return self.is_self_attention and tokens == len(self) * self.q_max_length

    @cached_property
    def packing(self) -> Packing:
        """The sequences packed into tiles, for attention with dropout on the CPU."""
        return pack_sequences(self.q_edges)

    @cached_property
    def q_order(self) -> Tensor | None:
        """Index that sorts the queries by group; None if they are sorted already."""
        return self._order(self.q_edges)

    @cached_property
    def k_order(self) -> Tensor | None:
        """The same for the keys."""
        return self._order(self.k_edges)

    def _order(self, edges: list[int]) -> Tensor | None:
        spans = [(edges[row], edges[row + 1]) for group in self.groups for row in group.rows]
        if [place for span in spans for place in span] == _filled(edges):
            return None
        index = torch.cat([torch.arange(start, end) for start, end in spans] or [torch.arange(0)])
        return index.to(self.q_bounds.device)

    @cached_property
    def q_back(self) -> Tensor | None:
        """The index of each query's result among the sorted ones; one past the end if it has no keys."""
        if self.q_order is None:
            return None
        count = self.q_order.numel()
        back = torch.full((self.q_edges[-1],), count, device=self.q_bounds.device)
        back[self.q_order] = torch.arange(count, device=self.q_bounds.device)
        return back


def _filled(edges: list[int]) -> list[int]:
    """Start and end of every sequence that is not empty."""
    return [place for start, end in pairwise(edges) if end > start for place in (start, end)]


@dataclass(frozen=True, eq=False)
class SlotLayout(Layout):
    """The layout of a cache: `capacity` key slots per sequence, the first `filled` of which are used.

    All sequences have the same number of queries, at the position of the last key. Several queries of one sequence are
    beams that attend to the same encoder states.
    """

    filled: Tensor  # (B,)
    capacity: int
    all_filled: bool = False  # all sequences fill k_max_length slots
    score_masks: dict[object, Tensor | None] = field(
        default_factory=dict
    )  # masks, computed once for all layers of a pass

    def in_slots(self, x_MGK: Tensor) -> Tensor:
        """(B, C, G, K) keys or values by slot; they may be given flat."""
        return x_MGK if x_MGK.dim() == 4 else x_MGK.unflatten(0, (-1, self.capacity))

    def keys_of(self, x_MGK: Tensor, row: int) -> Tensor:
        return self.in_slots(x_MGK)[row, : int(self.filled[row])]

    def spans(self, row: int) -> tuple[slice, slice]:
        start = row * self.capacity
        queries = slice(row * self.q_max_length, (row + 1) * self.q_max_length)
        return queries, slice(start, start + int(self.filled[row]))


@dataclass(frozen=True, eq=False)
class SequenceGroup:
    """Sequences with equal numbers of queries and of keys: one dense tensor without padding."""

    rows: list[int]
    queries: int  # of each
    keys: int
    device: torch.device

    @cached_property
    def positions(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sequence, query position and key position, shaped to broadcast over (B, H, T, S)."""
        row = torch.tensor(self.rows, device=self.device).view(-1, 1, 1, 1)
        query = torch.arange(self.keys - self.queries, self.keys, device=self.device).view(1, 1, -1, 1)
        return row, query, torch.arange(self.keys, device=self.device).view(1, 1, 1, -1)
