"""Sequences side by side in tiles: the plan that attention with dropout on the CPU works by.

Sequences of up to 128 tokens share tiles of 128 places, longer ones have a tile of their own, its size rounded up.

Shapes: N tokens, P tiles, S places of a tile. True = may attend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

TILE = 128  # places shared by short sequences
STEP = 32  # sizes of larger tiles are multiples of this


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of one size. Empty places hold the number one past the last token, and the sequence -1."""

    token: Tensor  # (P, S)
    row: Tensor  # (P, S)
    place: Tensor  # (P, S) in its own sequence

    @cached_property
    def together(self) -> Tensor:
        """(P, 1, S, S) True within a sequence. An empty place may see the others, so that it has something to see."""
        same = self.row.unsqueeze(2) == self.row.unsqueeze(1)
        return (same | (self.row < 0).unsqueeze(2)).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Packing:
    """All tiles of a batch, and where each token's result lies in them."""

    tiles: list[Tiles]
    back: Tensor  # (N,)


def pack(edges: Sequence[int]) -> Packing:
    """Lay sequences into tiles, in order; one that does not fit any more opens the next."""
    sizes: dict[int, list[list[int]]] = {}
    room: dict[int, int] = {}
    for row in range(len(edges) - 1):
        length = edges[row + 1] - edges[row]
        if length == 0:
            continue
        size = TILE if length <= TILE else -(-length // STEP) * STEP
        if room.get(size, -1) < length:
            sizes.setdefault(size, []).append([])
            room[size] = size
        sizes[size][-1].append(row)
        room[size] -= length
    tiles = [_lay(held, size, edges) for size, held in sizes.items()]
    flat = torch.cat([tile.token.flatten() for tile in tiles] or [torch.zeros(0, dtype=torch.int64)])
    back = torch.empty(edges[-1] + 1, dtype=torch.int64)
    back[flat] = torch.arange(len(flat))
    return Packing(tiles, back[:-1])


def _lay(held: list[list[int]], size: int, edges: Sequence[int]) -> Tiles:
    token = torch.full((len(held), size), edges[-1])
    row = torch.full((len(held), size), -1)
    place = torch.zeros((len(held), size), dtype=torch.int64)
    for number, rows in enumerate(held):
        at = 0
        for sequence in rows:
            start, end = edges[sequence], edges[sequence + 1]
            span = slice(at, at + end - start)
            token[number, span] = torch.arange(start, end)
            row[number, span] = sequence
            place[number, span] = torch.arange(end - start)
            at += end - start
    return Tiles(token, row, place)
