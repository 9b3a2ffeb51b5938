"""Progress of long-running work: one callback type for every function that reports it.

A function that takes a while has the parameter `progress: OnProgress | None = None` and calls it with a `Progress`
every now and then. The library never prints; the command line shows bars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far some work is.

    stage: what is counted, such as "rows", "texts" or "bytes".
    done: how much of it is done.
    total: how much there is; None where that is not known.
    values: further numbers of the stage, such as the loss of a training step.
    """

    stage: str
    done: int
    total: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


OnProgress = Callable[[Progress], None]
