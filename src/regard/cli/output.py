"""What several verbs use: what is printed and where, wrong use."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import InputError, plain

if TYPE_CHECKING:
    from regard.metrics.confidence import Score
    from regard.predict.model import Model


class UsageError(Exception):
    """Arguments that do not go together."""


class Verb(NamedTuple):
    """What a verb takes, what it says of itself with examples, what it does, and how it reads its arguments."""

    settings: type
    about: str
    run: Callable[[Any], None]
    parse: Callable[..., Any] | None = None  # tyro itself where nothing has to be done before


def check_batch_tokens(settings: object) -> None:
    """A batch of no token would do nothing, or all at once."""
    given = getattr(settings, "batch_tokens", None)
    if given is not None and given < 1:
        raise InputError(f"--batch-tokens is {given}, expected at least 1 token.")


def print_json(value: dict[str, Any]) -> None:
    """One object on one line."""
    print(json.dumps(value, ensure_ascii=False))


def untrained_field(model: Model) -> dict[str, Any]:
    """What JSON says of a model whose weights are randomly initialized; nothing of any other."""
    return {"untrained": True} if model.untrained else {}


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """Two columns, the left one as wide as its longest word."""
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        print(f"{left.ljust(width)}  {right}")


def print_scores(scores: Mapping[str, Score]) -> None:
    """A line a score, with its interval."""
    width = max(5, *(len(name) for name in scores))
    values = {name: f"{score.value:.4f}" for name, score in scores.items()}
    room = max(map(len, values.values()))
    print(f"{'score'.ljust(width)}  {'value'.rjust(room)}   95 % interval")
    for name, score in scores.items():
        print(f"{name.ljust(width)}  {values[name].rjust(room)}   {score.low:.4f} to {score.high:.4f}")


def print_said(line: str) -> None:
    """Something about the work, on stderr."""
    print(plain(line), file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress_bar(what: str, *, after: float = 2.0) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr for work that takes longer than a moment, where a person is looking; of 0 is of nobody knows."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    began = time.monotonic()
    bar = Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what)

    def tell(done: int, total: int) -> None:
        if time.monotonic() - began >= after:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        yield tell
    finally:
        bar.stop()


@contextlib.contextmanager
def progress_rows(what: str, *, every: float = 0.5, after: float = 2.0) -> Iterator[Callable[[int], None]]:
    """How many so far, where a person is looking and nobody knows how many there will be."""
    looking, began = sys.stderr.isatty(), time.monotonic()
    last = began + after - every

    def tell(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if looking and now - last >= every:
            last = now
            print(f"\r{done:,} {what}, {done / (now - began):,.0f} a second", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if looking and last > began + after - every:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def short(text: str, most: int = 40) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def a_second(count: int, seconds: float) -> str:
    """A speed in words; a slow one is not none."""
    speed = count / max(seconds, 1e-9)
    return f"{speed:,.0f} a second" if speed >= 10 else f"{speed:.2g} a second"


def in_bytes(count: int) -> str:
    """A size in words."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
