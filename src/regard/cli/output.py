"""Printing of results, tables and progress, and the error for wrong arguments."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import InputError, escape_control_characters, pluralize
from regard.progress import OnProgress, Progress

if TYPE_CHECKING:
    from regard.metrics.confidence import Score
    from regard.predict.model import Model


class UsageError(Exception):
    """Wrong arguments; the exit status is 2."""


def check_batch_tokens(settings: object) -> None:
    """Raise InputError if --batch-tokens is below 1."""
    batch_tokens = getattr(settings, "batch_tokens", None)
    if batch_tokens is not None and batch_tokens < 1:
        raise InputError(f"--batch-tokens is {batch_tokens}, expected at least 1 token.")


def print_json(value: dict[str, Any]) -> None:
    """Print one object on one line."""
    print(json.dumps(value, ensure_ascii=False))


def untrained_field(model: Model) -> dict[str, Any]:
    """The JSON field of a model whose weights are randomly initialized; empty for any other."""
    return {"untrained": True} if model.untrained else {}


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """Print two columns, the left one as wide as its longest cell."""
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        print(f"{left.ljust(width)}  {right}")


def print_scores(scores: Mapping[str, Score]) -> None:
    """Print one line per score, with its interval."""
    width = max(5, *(len(name) for name in scores))
    values = {name: f"{score.value:.4f}" for name, score in scores.items()}
    width_of_values = max(map(len, values.values()))
    print(f"{'score'.ljust(width)}  {'value'.rjust(width_of_values)}   95 % interval")
    for name, score in scores.items():
        print(f"{name.ljust(width)}  {values[name].rjust(width_of_values)}   {score.low:.4f} to {score.high:.4f}")


def print_status(line: str) -> None:
    """Print a line about the work on stderr."""
    print(escape_control_characters(line), file=sys.stderr, flush=True)


def print_parts(rows: int, parts: int, output: Path, *, json: bool) -> None:
    """Print what a run on a cluster has written."""
    if json:
        print_json({"rows": rows, "output": str(output), "parts": parts})
    else:
        print_status(f"{pluralize(rows, 'row')} in {pluralize(parts, 'part')}: {output}")


@contextlib.contextmanager
def progress_bar(*, after: float = 2.0) -> Iterator[OnProgress | None]:
    """A progress bar on stderr for work that takes longer than `after` seconds; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    started = time.monotonic()
    bar = rich_progress.Progress(
        *rich_progress.Progress.get_default_columns()[:2],
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    stage = bar.add_task("")

    def show(work: Progress) -> None:
        if time.monotonic() - started >= after:
            bar.start()
        bar.update(stage, description=work.stage, completed=work.done, total=work.total)

    try:
        yield show
    finally:
        bar.stop()


@contextlib.contextmanager
def progress_rows(*, every: float = 0.5, after: float = 2.0) -> Iterator[OnProgress]:
    """A count and its speed on stderr, for work of unknown size; nothing where stderr is no terminal."""
    is_terminal, started = sys.stderr.isatty(), time.monotonic()
    last = started + after - every

    def show(work: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if is_terminal and now - last >= every:
            last = now
            speed = work.done / (now - started)
            print(f"\r{work.done:,} {work.stage}, {speed:,.0f} per second", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if is_terminal and last > started + after - every:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def shorten(text: str, max_length: int = 40) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_length else f"{flat[: max_length - 1]}…"


def format_rate(count: int, seconds: float) -> str:
    """A rate such as "1,200 per second"; slow ones with two digits."""
    speed = count / max(seconds, 1e-9)
    return f"{speed:,.0f} per second" if speed >= 10 else f"{speed:.2g} per second"


def format_bytes(count: int) -> str:
    """A size such as "1.5 GB"."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
