"""Meters accumulate predictions and gold values record by record, and compute scores with their 95 % intervals.

A meter keeps counts, not rows, so a million rows take no more memory than ten thousand. Two meters keep a few numbers
per row: NumberMeter, since ranks need every number, and AnswerMeter if it has to find a threshold. The order of rows
and the size of blocks do not change the scores. The registry (registry.py) describes every score, and adds new ones.
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
    """The interface of all meters."""

    @property
    def main(self) -> str:
        """The score that early stopping watches; the first of `scores()`."""

    @property
    def higher_is_better(self) -> bool:
        """Whether higher values of the main score are better."""

    @property
    def rows(self) -> int:
        """Records added so far."""

    def add(self, predicted: Any, gold: Any, /) -> None:
        """Add one record."""

    def scores(self) -> dict[str, Score]:
        """Each score with its interval, the main one first. More records may be added afterwards."""
