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


class FindingCollector:
    """What the checks hand their findings to. Memory does not grow with the rows."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], _Found] = {}

    def add(
        self,
        kind: str,
        place: Place,
        message: str,
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
            held = self.found[kind, key] = _Found(place, message, grave, fix or known.fix, split)
        held.severity = min(held.severity, grave, key=SEVERITIES.index)
        held.count += count
        if len(held.examples) < EXAMPLES:
            held.examples.append(Example(place.file, place.line, place.row, message, excerpt(text)))
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


def excerpt(text: str, limit: int = SHOWN) -> str:
    """The beginning of a text on one line."""
    flat = " ".join(text[: 4 * limit].split())
    return flat if len(flat) <= limit and len(text) <= 4 * limit else f"{flat[: limit - 1]}…"


def quoted(names: Iterable[str], limit: int = 6) -> str:
    """Names in quotes, the rest counted."""
    every = list(names)
    rest = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(f'"{excerpt(name, 40)}"' for name in every[:limit]) + rest
