"""Sequences side by side in tiles: the plan that attention with dropout on the CPU works by.

Short sequences share tiles of 64 or 128 places, whichever makes the least work for the batch; longer ones have a
tile of their own, its size rounded up.

Shapes: N tokens, P tiles, S places of a tile. True = may attend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

TILES = (64, 128)  # places shared by short sequences
SIZE, TILE = 30_000, 500  # what another size of tiles costs, and another tile, in scores that could be made instead
STEP = 32  # sizes of larger tiles are multiples of this


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of one size. Empty places hold the first token, whose copy nobody reads, and the sequence -1."""

    token: Tensor  # (P, S)
    row: Tensor  # (P, S)
    place: Tensor  # (P, S) in its own sequence

    @cached_property
    def apart(self) -> Tensor:
        """(P, 1, S, S) 0 within a sequence, else -inf. An empty place may see all, so that it has something to see."""
        together = (self.row.unsqueeze(2) == self.row.unsqueeze(1)) | (self.row < 0).unsqueeze(2)
        return torch.where(together, 0.0, float("-inf")).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Packing:
    """All tiles of a batch, and where each token's result lies in them."""

    tiles: list[Tiles]
    back: Tensor  # (N,)


def pack_sequences(edges: Sequence[int]) -> Packing:
    """The tiles that make the least work."""
    sizes = min((_fill(edges, tile) for tile in TILES), key=_work)
    tiles = [_lay(held, size, edges) for size, held in sizes.items()]
    back = torch.empty(edges[-1], dtype=torch.int64)
    at = 0
    for tile in tiles:
        there = (tile.row >= 0).flatten().nonzero().squeeze(1)
        back[tile.token.flatten()[there]] = there + at
        at += tile.token.numel()
    return Packing(tiles, back)


def _work(sizes: dict[int, list[list[int]]]) -> int:
    """Scores, and what making them in several parts adds."""
    return sum(SIZE + len(tiles) * (size * size + TILE) for size, tiles in sizes.items())


def _fill(edges: Sequence[int], tile: int) -> dict[int, list[list[int]]]:
    """Sequences in order by the size of their tiles; one that does not fit any more opens the next."""
    sizes: dict[int, list[list[int]]] = {}
    room: dict[int, int] = {}
    for row in range(len(edges) - 1):
        length = edges[row + 1] - edges[row]
        if length == 0:
            continue
        size = tile if length <= tile else -(-length // STEP) * STEP
        if room.get(size, -1) < length:
            sizes.setdefault(size, []).append([])
            room[size] = size
        sizes[size][-1].append(row)
        room[size] -= length
    return sizes


def _lay(held: list[list[int]], size: int, edges: Sequence[int]) -> Tiles:
    token = torch.zeros((len(held), size), dtype=torch.int64)
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
