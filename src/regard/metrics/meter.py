"""Meters: what a task adds its answers to, record by record, and asks for scores with their 95 % intervals.

Every meter holds counts, not rows, so evaluation takes no more memory for a million rows than for ten thousand. Two
cannot, and keep a few numbers a row: NumberMeter, since ranks need every number, and AnswerMeter where it has to find
a threshold. Adding rows in one order or in blocks of any size gives the same scores.
"""

from __future__ import annotations

from typing import Any, Protocol

from regard.metrics.confidence import Score
from regard.metrics.label_meters import LabelMeter, MultiLabelMeter
from regard.metrics.number_meters import MeanMeter, NumberMeter, PerplexityMeter
from regard.metrics.text_meters import AnswerMeter, EntityMeter, TokenMeter

__all__ = [
    "AnswerMeter",
    "EntityMeter",
    "LabelMeter",
    "MeanMeter",
    "Meter",
    "MultiLabelMeter",
    "NumberMeter",
    "PerplexityMeter",
    "Score",
    "TokenMeter",
]


class Meter(Protocol):
    """What training, evaluation and comparison know about scores."""

    @property
    def main(self) -> str:
        """The score that early stopping watches; the first of `scores()`."""

    @property
    def higher_is_better(self) -> bool:
        """Whether more of it is better."""

    @property
    def rows(self) -> int:
        """Records added so far."""

    def add(self, predicted: Any, gold: Any, /) -> None:
        """One record."""

    def scores(self) -> dict[str, Score]:
        """Each score with its interval, the main one first. More records may be added afterwards."""
