"""What every benchmark shares: lengths, clocks, tables, plots."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
import transformers

import regard

regard.prepare_process()  # for the processes that are started here; those of the peer leave these variables out

# How long torch keeps freed memory on ARM. It is read once, when torch is loaded, and holds for a whole process.
DEFAULT_ALLOCATOR: dict[str, str | None] = {"MIMALLOC_PURGE_DELAY": None, "GOMP_SPINCOUNT": None}
KEEP_MEMORY: dict[str, str | None] = {"MIMALLOC_PURGE_DELAY": "1000"}  # as `regard.prepare_process` sets it
KEEP_NOTE = f"freed memory (MIMALLOC_PURGE_DELAY={KEEP_MEMORY['MIMALLOC_PURGE_DELAY']})"


@dataclass(frozen=True)
class Row:
    """One case: the peer's time, ours, and what was hoped for."""

    case: str
    peer_ms: float
    ours_ms: float
    target: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Print each row as it is measured; the whole table follows at the end."""
        times = f"{self.peer_ms:,.2f} ms, regard {self.ours_ms:,.2f} ms"
        show_progress(f"{self.case}: {times}, {self.ratio:.2f} times as fast\n")

    @property
    def ratio(self) -> float:
        return self.peer_ms / self.ours_ms


def lengths(count: int, mean: float, *, rng: random.Random, spread: float = 1.0, max_length: int = 512) -> list[int]:
    """Log-normal lengths with that mean, cut at `max_length`; the greater the spread, the more padding."""
    centre = math.log(mean) - spread**2 / 2
    return [min(max_length, max(3, round(rng.lognormvariate(centre, spread)))) for _ in range(count)]


def median_times(*calls: Callable[[], object], rounds: int, warm: int = 1) -> list[float]:
    """Median milliseconds of each call, the calls taking turns, so that noise falls on all alike."""
    return alternate(*(partial(milliseconds, call) for call in calls), rounds=rounds, warm=warm)


def alternate(*clocks: Callable[[], float], rounds: int, warm: int = 1) -> list[float]:
    """Median of what each clock says, the clocks taking turns."""
    turns = []
    for number in range(warm + rounds):
        show_progress(f"measuring: round {number + 1} of {warm + rounds}")
        turns.append([clock() for clock in clocks])
    show_progress("")
    return [statistics.median(times) for times in zip(*turns[warm:], strict=True)]


def show_progress(text: str) -> None:
    """Replace the last line on stderr; without a terminal only whole lines are printed."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text.endswith("\n"):
        print(text, end="", file=sys.stderr, flush=True)


def milliseconds(call: Callable[..., object], *args: Any) -> float:
    _wait()
    start = time.perf_counter()
    call(*args)
    _wait()
    return 1e3 * (time.perf_counter() - start)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class SeparateProcess:
    """A new process with its own environment (None: without that variable), which is asked one thing at a time."""

    def __init__(self, environment: Mapping[str, str | None]) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        before = {name: os.environ.get(name) for name in environment}
        _set(environment)
        try:
            self.call(os.getpid)  # it starts with the first thing asked
        finally:
            _set(before)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._pool.submit(function, *args).result()

    def milliseconds(self, function: Callable[..., Any], *args: Any) -> float:
        """By the clock over there, so that sending things there and back is not counted."""
        return float(self.call(milliseconds, function, *args))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()


def _set(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def memory_note(peer_keeps_memory: bool) -> str:
    """What a table says about freed memory."""
    return f"each in a separate process; {'both keep' if peer_keeps_memory else 'regard keeps'} {KEEP_NOTE}"


def machine() -> str:
    """The hardware and the versions, in a line."""
    where = f"{torch.get_num_threads()} threads of {platform.machine()}"
    if torch.cuda.is_available():
        where = torch.cuda.get_device_name()
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, Python {platform.python_version()}"
    return f"{where}; {versions}"


def table(rows: Sequence[Row], peer: str) -> str:
    """A Markdown table."""
    lines = [f"| case | {peer} ms | regard ms | times as fast | target | |", "|---|---|---|---|---|---|"]
    for row in rows:
        target = "" if row.target is None else f"≥ {row.target:g}"
        lines.append(
            f"| {row.case} | {row.peer_ms:.2f} | {row.ours_ms:.2f} | {row.ratio:.2f} | {target} | {row.note} |"
        )
    return "\n".join(lines)


def plot(rows: Sequence[Row], title: str, peer: str, path: Path) -> None:
    """How many times as fast, a bar a case, with what was hoped for."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.55 * len(rows) + 1.4), layout="constrained")
    rows_y = range(len(rows))
    bars = axes.barh(rows_y, [row.ratio for row in rows], color="#3b6ea8", height=0.62)
    labels = axes.bar_label(bars, [f"{row.ratio:.2f}×" for row in rows], padding=5)
    for label in labels:
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
        label.set_zorder(5)
    for y, row in zip(rows_y, rows, strict=True):
        if row.target is not None:
            axes.plot([row.target] * 2, [y - 0.38, y + 0.38], color="#c0504d", linewidth=2)
    axes.axvline(1, color="#888888", linewidth=1, linestyle=":")
    axes.set_yticks(rows_y, [row.case for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(max(row.ratio, row.target or 0) for row in rows))
    axes.set_xlabel(f"times as fast as {peer} (dotted: equal; red: target)")
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)


def keep(rows: Sequence[Row], *, name: str, title: str, peer: str, out: Path, note: str = "") -> None:
    """Write numbers, table and plot, and say the table."""
    out.mkdir(parents=True, exist_ok=True)
    where = f"{machine()}; {note}" if note else machine()
    text = f"{title}\n\n{where}\n\n{table(rows, peer)}\n"
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    numbers = [asdict(row) | {"ratio": row.ratio} for row in rows]
    (out / f"{name}.json").write_text(json.dumps({"machine": where, "rows": numbers}, indent=2), encoding="utf-8")
    plot(rows, title, peer, out / f"{name}.png")
    print(text)
