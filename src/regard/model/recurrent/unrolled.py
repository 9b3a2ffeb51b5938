"""A ragged batch in the order of time steps, as recurrent layers read it (torch's PackedSequence).

Nothing is padded: a sequence that has ended is not in later steps. Shapes: N tokens, B sequences, R those with a token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.ragged import Ragged


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The tokens of a batch in the order of their steps, in each step the longest sequence first."""

    rows: Tensor  # (R,) the sequences with at least one token, the longest first
    order: Tensor  # (N,) flat position of each token, in the order of the steps
    back: Tensor  # (N,) index of each flat token in that order
    sizes: tuple[int, ...]  # sequences that have a token at each step, never rising

    @classmethod
    def of(cls, batch: Ragged) -> Unrolled:
        bounds = batch.bounds.cpu().long()
        lengths = bounds.diff()
        rows = torch.argsort(lengths, descending=True, stable=True)
        rows = rows[: int((lengths > 0).sum())]
        max_length = int(lengths.max()) if len(lengths) else 0
        step = torch.arange(max_length).unsqueeze(1)
        there = step < lengths[rows]
        order = (bounds[:-1][rows] + step)[there]
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        device = batch.ids.device
        return cls(rows.to(device), order.to(device), back.to(device), tuple(there.sum(1).tolist()))
