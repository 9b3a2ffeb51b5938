"""The interface of a target: the number of a network's output that is explained.

Shapes: B sequences, P positions of a target, C numbers that are read for each sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from regard.look.explain.explanation import ExplainedTarget
from regard.model.transformer import Output
from regard.ragged import Ragged


@dataclass(frozen=True)
class Target(ABC):
    """A number to explain, read from the output of a network.

    `read` returns a few numbers per sequence. Those of the windows of a long text are averaged, and `score` and
    `probability` are computed from the mean. `score` is linear, so that it is also the mean of the windows' scores.
    """

    info: ExplainedTarget

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions in the sequence (of the decoder, where there is one) that `read` needs."""
        return self.info.positions

    def at(self, positions_BP: Tensor) -> Tensor | None:
        """Flat positions at which the network has to compute logits; None for all."""
        return positions_BP.flatten()

    @abstractmethod
    def read(self, output: Output, batch: Ragged, positions_BP: Tensor) -> Tensor:
        """(B, C) what `score` and `probability` need. `positions_BP` are flat positions in the batch."""

    @abstractmethod
    def score(self, values_BC: Tensor) -> Tensor:
        """(B,) the number that is explained."""

    def linear_score(self, values_BC: Tensor) -> Tensor:
        """(B,) the same number as a linear function of what was read, with fixed factors where `score` is not."""
        return self.score(values_BC)

    def probability(self, values_BC: Tensor) -> Tensor | None:
        """(B,) the probability of the target; None where there is none."""
        return None

    def rollout_rows(self, length: int) -> list[int]:
        """The positions whose hidden states the target is read from, for methods that follow attention."""
        return list(self.positions) or list(range(length))
