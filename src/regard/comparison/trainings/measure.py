"""What a model costs: time of one text, texts per second, peak memory."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LATENCY_TEXTS = 30
WARM_UP = 3
LATENCY_SECONDS = 5.0  # at most, for large models


def median_latency(
    answer: Callable[[Any], object], items: Sequence[Any], *, on_item: Callable[[int], None] | None = None
) -> float:
    """The median time to answer one item, in milliseconds. `on_item` is called with the number of items done."""
    for item in items[:WARM_UP]:
        answer(item)
    times: list[float] = []
    started = time.perf_counter()
    for item in items[:LATENCY_TEXTS]:
        before = time.perf_counter()
        answer(item)
        times.append(time.perf_counter() - before)
        if on_item is not None:
            on_item(len(times))
        if time.perf_counter() - started > LATENCY_SECONDS:
            break
    return 1000 * statistics.median(times) if times else 0.0


def reset_peak_memory() -> None:
    """Start to measure the peak memory of this process again, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int | None:
    """The peak memory of this process in bytes since `reset_peak_memory`; None if the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(size if sys.platform == "darwin" else size * 1024)
