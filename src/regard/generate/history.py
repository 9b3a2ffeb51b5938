"""The tokens so far of a batch in one tensor, for the rules.

Shapes: B sequences, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.generate.rules import RuleContext


class History:
    """Sequences that grow by one token per step, padded with an id that is no token."""

    def __init__(self, starts: Sequence[Sequence[int]], new: int, filler: int, device: torch.device | str) -> None:
        lengths = [len(start) for start in starts]
        self.ids_BT = torch.full((len(starts), max(lengths) + new), filler)
        for row, start in enumerate(starts):
            self.ids_BT[row, : len(start)] = torch.tensor(start)
        self.ids_BT = self.ids_BT.to(device)
        self.lengths_B = torch.tensor(lengths, device=device)
        self.max_length = max(lengths)

    def rule_context(self, new: int, max_new_tokens: Sequence[int], prompts: Sequence[int]) -> RuleContext:
        return RuleContext(self.ids_BT[:, : self.max_length], self.lengths_B, new, max_new_tokens, prompts)

    def add(self, next_B: Tensor) -> None:
        self.ids_BT.scatter_(1, self.lengths_B.unsqueeze(1), next_B.unsqueeze(1))
        self.lengths_B = self.lengths_B + 1
        self.max_length += 1

    def select(self, rows_B: Tensor) -> None:
        self.ids_BT, self.lengths_B = self.ids_BT[rows_B], self.lengths_B[rows_B]
