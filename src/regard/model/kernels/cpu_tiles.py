"""Packing of sequences into tiles, for attention with dropout on the CPU.

Short sequences share tiles of 64 or 128 tokens, whichever is less work for the batch; a longer one has a tile of its
own, with its size rounded up.

Shapes: N tokens, P tiles, S positions of a tile. True = may attend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

TILES = (64, 128)  # sizes of the tiles that short sequences share
SIZE, TILE = 30_000, 500  # cost of one more tile size and of one more tile, in computed scores
STEP = 32  # sizes of larger tiles are multiples of this


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of one size. Unused positions have the token 0, which is not read, and the sequence -1."""

    token: Tensor  # (P, S)
    row: Tensor  # (P, S)
    position: Tensor  # (P, S) position in its sequence

    @cached_property
    def apart(self) -> Tensor:
        """(P, 1, S, S) 0 within a sequence, else -inf. An unused position may attend to all, which avoids NaN."""
        together = (self.row.unsqueeze(2) == self.row.unsqueeze(1)) | (self.row < 0).unsqueeze(2)
        return torch.where(together, 0.0, float("-inf")).unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Packing:
    """All tiles of a batch, and the index of each token's result in them."""

    tiles: list[Tiles]
    back: Tensor  # (N,)


def pack_sequences(edges: Sequence[int]) -> Packing:
    """The packing with the least work."""
    sizes = min((_fill(edges, tile) for tile in TILES), key=_work)
    tiles = [_lay(contents, size, edges) for size, contents in sizes.items()]
    back = torch.empty(edges[-1], dtype=torch.int64)
    offset = 0
    for tile in tiles:
        filled = (tile.row >= 0).flatten().nonzero().squeeze(1)
        back[tile.token.flatten()[filled]] = filled + offset
        offset += tile.token.numel()
    return Packing(tiles, back)


def _work(sizes: dict[int, list[list[int]]]) -> int:
    """Estimated cost: the number of scores, plus the overhead of each tile and tile size."""
    return sum(SIZE + len(tiles) * (size * size + TILE) for size, tiles in sizes.items())


def _fill(edges: Sequence[int], tile: int) -> dict[int, list[list[int]]]:
    """Sequences per tile, by tile size: in order, and a sequence that does not fit starts the next tile."""
    sizes: dict[int, list[list[int]]] = {}
    free: dict[int, int] = {}
    for row in range(len(edges) - 1):
        length = edges[row + 1] - edges[row]
        if length == 0:
            continue
        size = tile if length <= tile else -(-length // STEP) * STEP
        if free.get(size, -1) < length:
            sizes.setdefault(size, []).append([])
            free[size] = size
        sizes[size][-1].append(row)
        free[size] -= length
    return sizes


def _lay(contents: list[list[int]], size: int, edges: Sequence[int]) -> Tiles:
    token = torch.zeros((len(contents), size), dtype=torch.int64)
    row = torch.full((len(contents), size), -1)
    place = torch.zeros((len(contents), size), dtype=torch.int64)
    for number, rows in enumerate(contents):
        offset = 0
        for sequence in rows:
            start, end = edges[sequence], edges[sequence + 1]
            span = slice(offset, offset + end - start)
            token[number, span] = torch.arange(start, end)
            row[number, span] = sequence
            place[number, span] = torch.arange(end - start)
            offset += end - start
    return Tiles(token, row, place)
