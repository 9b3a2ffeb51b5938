"""What several verbs use: what is printed and where, types of arguments that come again, wrong use."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from tyro.conf import Positional, arg

ModelName = Annotated[
    Positional[str], arg(help='A model folder, the name of a preset, "minilm", or a hub id.', metavar="MODEL")
]
Json = Annotated[bool, arg(help="Print JSON instead of a table.")]


class UsageError(Exception):
    """Arguments that do not go together."""


class Verb(NamedTuple):
    """What a verb takes, what it says of itself with examples, and what it does."""

    settings: type
    about: str
    run: Callable[[Any], None]


def print_json(value: dict[str, Any]) -> None:
    """One object on one line."""
    print(json.dumps(value, ensure_ascii=False))


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """Two columns, the left one as wide as its longest word."""
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        print(f"{left.ljust(width)}  {right}")


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


def in_bytes(count: int) -> str:
    """A size in words."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
