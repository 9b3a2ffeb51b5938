"""Who meets whom: masks, and where the queries and keys of each sequence lie.

Shapes: N queries and M keys of all sequences, B sequences, T and S the queries and keys of one. True = may attend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(sequence, head, query place, key place) -> True where the query may attend to the key."""

SLACK = 8  # a row of a group is padded by at most 1 / SLACK of its own length


@dataclass(frozen=True)
class Mask:
    """Who may attend to whom inside a sequence: how far to the left and to the right, and a function of one's own.

    Places count from the end, so that the last query stands at the last key, whatever was cached before it.
    """

    left: int | None = None
    right: int | None = None
    function: MaskFunction | None = None

    @property
    def free(self) -> bool:
        return self.left is None and self.right is None and self.function is None

    def allowed(self, row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Broadcast over the four indices; True = may attend."""
        may = key >= 0
        if self.left is not None:
            may = may & (query - key <= self.left)
        if self.right is not None:
            may = may & (key - query <= self.right)
        return may if self.function is None else may & self.function(row, head, query, key.clamp(min=0))


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the queries and the keys of each sequence lie in the flat tensors."""

    q_bounds: Tensor
    k_bounds: Tensor
    q_longest: int
    k_longest: int

    @classmethod
    def own(cls, bounds: Tensor, longest: int) -> Layout:
        """Queries and keys of the same tokens."""
        return cls(bounds, bounds, longest, longest)

    def __len__(self) -> int:
        return self.q_bounds.numel() - 1

    def spans(self, row: int) -> tuple[slice, slice]:
        """Where the queries and the keys of one sequence lie."""
        return slice(*self.q_edges[row : row + 2]), slice(*self.k_edges[row : row + 2])

    @cached_property
    def q_edges(self) -> list[int]:
        edges: list[int] = self.q_bounds.tolist()
        return edges

    @cached_property
    def k_edges(self) -> list[int]:
        edges: list[int] = self.q_edges if self.k_bounds is self.q_bounds else self.k_bounds.tolist()
        return edges

    @cached_property
    def groups(self) -> list[Group]:
        return plan(self.q_edges, self.k_edges, self.q_bounds.device)

    @cached_property
    def order(self) -> Tensor | None:
        """Where each query's result lies after the groups are laid end to end; None where it is in place already."""
        rows = [row for group in self.groups for row in group.rows]
        found = sum(length for group in self.groups for length in group.q_lengths)
        if rows == sorted(rows) and found == self.q_edges[-1]:
            return None
        order = torch.full((self.q_edges[-1],), found, dtype=torch.int64)
        if rows:
            order[torch.cat([group.q_places for group in self.groups])] = torch.arange(found)
        return order.to(self.q_bounds.device)


@dataclass(frozen=True, eq=False)
class Slots(Layout):
    """One query a sequence; its keys lie in a row of `capacity` slots, of which the first `filled` hold one."""

    filled: Tensor  # (B,)
    capacity: int

    def spans(self, row: int) -> tuple[slice, slice]:
        start = row * self.capacity
        return slice(row, row + 1), slice(start, start + int(self.filled[row]))


@dataclass(frozen=True, eq=False)
class Group:
    """Sequences whose queries and keys are (nearly) as many, so that they fit one dense tensor."""

    rows: list[int]
    q_starts: list[int]
    q_lengths: list[int]
    k_starts: list[int]
    k_lengths: list[int]
    device: torch.device

    @property
    def padded(self) -> bool:
        return len(set(self.q_lengths)) > 1 or len(set(self.k_lengths)) > 1

    @cached_property
    def q_places(self) -> Tensor:
        """Index of the real queries, row after row."""
        spans = zip(self.q_starts, self.q_lengths, strict=True)
        return torch.cat([torch.arange(start, start + length) for start, length in spans])

    @cached_property
    def q_real(self) -> Tensor:
        """(B, T) True at queries, False at the padding of a row."""
        lengths = torch.tensor(self.q_lengths).unsqueeze(1)
        return (torch.arange(max(self.q_lengths)) < lengths).to(self.device)

    def take_q(self, x: Tensor) -> Tensor:
        return self._take(x, self._q_index)

    def take_k(self, x: Tensor) -> Tensor:
        return self._take(x, self._k_index)

    def _take(self, x: Tensor, index: Tensor | slice) -> Tensor:
        """(B, T, ...) the group's rows: a view where they lie side by side and are equally long."""
        rows: Tensor = x[index].unflatten(0, (len(self.rows), -1))
        return rows

    @cached_property
    def _q_index(self) -> Tensor | slice:
        return _index(self.q_starts, self.q_lengths, self.device)

    @cached_property
    def _k_index(self) -> Tensor | slice:
        if self.k_starts == self.q_starts and self.k_lengths == self.q_lengths:
            return self._q_index
        return _index(self.k_starts, self.k_lengths, self.device)

    @cached_property
    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sequence, query place and key place, shaped to broadcast over (B, H, T, S); -1 at padding."""
        row = torch.tensor(self.rows, device=self.device).view(-1, 1, 1, 1)
        q_length = torch.tensor(self.q_lengths, device=self.device).view(-1, 1, 1, 1)
        k_length = torch.tensor(self.k_lengths, device=self.device).view(-1, 1, 1, 1)
        t = torch.arange(max(self.q_lengths), device=self.device).view(1, 1, -1, 1)
        s = torch.arange(max(self.k_lengths), device=self.device).view(1, 1, 1, -1)
        if not self.padded:
            return row, t + (self.k_lengths[0] - self.q_lengths[0]), s
        return row, torch.where(t < q_length, t + k_length - q_length, 0), torch.where(s < k_length, s, -1)


def _index(starts: list[int], lengths: list[int], device: torch.device) -> Tensor | slice:
    longest = max(lengths)
    if all(start == starts[0] + i * longest for i, start in enumerate(starts)) and min(lengths) == longest:
        return slice(starts[0], starts[0] + longest * len(starts))
    limit = torch.tensor(lengths).unsqueeze(1) - 1
    step = torch.minimum(torch.arange(longest).unsqueeze(0), limit)
    return (torch.tensor(starts).unsqueeze(1) + step).flatten().to(device)


def plan(q_edges: list[int], k_edges: list[int], device: torch.device) -> list[Group]:
    """Put sequences of nearly equal lengths together. A sequence without queries or keys needs no group."""
    sizes = [
        (k_edges[b + 1] - k_edges[b], q_edges[b + 1] - q_edges[b], b)
        for b in range(len(q_edges) - 1)
        if k_edges[b + 1] > k_edges[b] and q_edges[b + 1] > q_edges[b]
    ]
    groups: list[list[tuple[int, int, int]]] = []
    fewest = most = 0  # queries of a row of the last group
    for keys, queries, b in sorted(sizes):
        fewest, most = min(fewest, queries), max(most, queries)
        if groups and _near(groups[-1][0][0], keys) and _near(fewest, most):
            groups[-1].append((keys, queries, b))
        else:
            groups.append([(keys, queries, b)])
            fewest = most = queries
    return [
        Group(
            rows=[b for _, _, b in group],
            q_starts=[q_edges[b] for _, _, b in group],
            q_lengths=[q for _, q, _ in group],
            k_starts=[k_edges[b] for _, _, b in group],
            k_lengths=[k for k, _, _ in group],
            device=device,
        )
        for group in groups
    ]


def _near(short: int, long: int) -> bool:
    """Whether a row that short may be padded to that length."""
    return long * SLACK <= short * (SLACK + 1)
