"""The position of a training (step, epoch, best score so far), and the check of a stored one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

MAX_COUNT = 2**62
LENGTHS = {"guard": 6, "losses": 2}


@dataclass
class TrainingPosition:
    """The progress of a training. Random numbers of a step depend only on the seed and the number of the step."""

    step: int = 0
    epoch: int = 0
    in_epoch: int = 0  # completed steps of this epoch
    best: float | None = None  # best validation score
    best_loss: float | None = None  # validation loss of the best weights
    best_step: int = 0
    worse: int = 0  # evaluations since the best
    skipped: int = 0  # skipped steps, as last reported
    tokens: int = 0
    seconds: float = 0.0
    micro_tokens: int = 0
    guard: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # sum and count since the last report

    @classmethod
    def of(cls, stored: Any) -> Self:
        """The position stored in state.json. Raises ValueError if a field is missing or of another type."""
        if not isinstance(stored, Mapping):
            raise ValueError(f"position is a {type(stored).__name__}, expected an object")
        known = {one.name: str(one.type) for one in fields(cls)}
        for name in known.keys() ^ stored.keys():
            raise ValueError(f"position.{name:.50} is {'missing' if name in known else 'not known'}")
        for name, kind in known.items():
            if not _is(name, kind, stored[name]):
                raise ValueError(f"position.{name} is {str(stored[name])[:50]}, expected {_expected(name, kind)}")
        return cls(**stored)


def _is(name: str, kind: str, value: Any) -> bool:
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    if kind.startswith("list"):
        return isinstance(value, list) and len(value) == LENGTHS[name] and all(map(_is_number, value))
    if name == "seconds":
        return _is_number(value) and 0 <= value < math.inf
    return value is None or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_COUNT
    )


def _expected(name: str, kind: str) -> str:
    if kind == "int":
        return "a whole number from 0 on"
    if kind.startswith("list"):
        return f"a list of {LENGTHS[name]} numbers"
    return "a number" if name == "seconds" else "a number or null"
