"""Findings as they come: counted by kind, with the first few rows as examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from regard.data.check.finding import SEVERITIES, Example, Finding
from regard.data.check.kinds import KINDS
from regard.data.records import Place

EXAMPLES = 5
LINES = 100
SHOWN = 80  # characters of a text


@dataclass
class _Found:
    place: Place
    what: str
    severity: str
    fix: str
    split: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class Gather:
    """What the checks hand their findings to. Memory does not grow with the rows."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], _Found] = {}

    def note(
        self,
        kind: str,
        place: Place,
        what: str,
        *,
        text: str = "",
        split: str = "",
        key: str = "",
        severity: str | None = None,
        fix: str | None = None,
        count: int = 1,
    ) -> None:
        """One row of a kind. Rows of one kind and key make one finding, as grave as the gravest of them."""
        known = KINDS[kind]
        grave = severity or known.severity
        held = self.found.get((kind, key))
        if held is None:
            held = self.found[kind, key] = _Found(place, what, grave, fix or known.fix, split)
        held.severity = min(held.severity, grave, key=SEVERITIES.index)
        held.count += count
        if len(held.examples) < EXAMPLES:
            held.examples.append(Example(place.file, place.line, place.row, what, shown(text)))
        if place.line is not None and len(held.lines) < LINES:
            held.lines.append(place.line)

    def findings(self) -> tuple[Finding, ...]:
        """The gravest first, of these the most frequent."""
        order = sorted(self.found.items(), key=lambda one: (SEVERITIES.index(one[1].severity), -one[1].count))
        return tuple(_finding(kind, key, held) for (kind, key), held in order)


def _finding(kind: str, key: str, held: _Found) -> Finding:
    alone = key or held.count == 1  # a key is what all rows of the finding have in common, so that one speaks for all
    first = held.what if alone else f"{KINDS[kind].title} ({held.count:,}); the first: {held.what}"
    return Finding(
        kind=kind,
        severity=held.severity,
        file=held.place.file,
        line=held.place.line,
        row=held.place.row,
        message=first,
        fix=held.fix,
        count=held.count,
        split=held.split or None,
        examples=tuple(held.examples),
        lines=tuple(held.lines),
    )


def shown(text: str, most: int = SHOWN) -> str:
    """The beginning of a text on one line."""
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[: most - 1]}…"


def quoted(names: Iterable[str], most: int = 6) -> str:
    """Names in quotes, the rest counted."""
    every = list(names)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(f'"{shown(name, 40)}"' for name in every[:most]) + rest
