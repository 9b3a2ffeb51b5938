"""Collect findings while rows are checked: counts per kind, with the first rows as examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from regard.data.check.finding import SEVERITIES, Example, Finding
from regard.data.check.kinds import KINDS
from regard.data.records import Place

MAX_EXAMPLES = 5
MAX_LINES = 100
EXCERPT_LENGTH = 80  # characters of a text


@dataclass
class _OpenFinding:
    """A finding to which rows are still added."""

    place: Place
    message: str
    severity: str
    fix: str
    split: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class FindingCollector:
    """Rules add their findings here. Memory does not grow with the number of rows."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _OpenFinding] = {}

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
        """Add one row, or `count` rows.

        Rows of the same kind and key make one finding, with the highest of their severities. `severity` and `fix` are
        those of the kind if not given; `text` is shown as an example.
        """
        defaults = KINDS[kind]
        severity = severity or defaults.severity
        finding = self._open.get((kind, key))
        if finding is None:
            finding = _OpenFinding(place, message, severity, fix or defaults.fix, split)
            self._open[kind, key] = finding
        finding.severity = min(finding.severity, severity, key=SEVERITIES.index)
        finding.count += count
        if len(finding.examples) < MAX_EXAMPLES:
            finding.examples.append(Example(place.file, place.line, place.row, message, excerpt(text)))
        if place.line is not None and len(finding.lines) < MAX_LINES:
            finding.lines.append(place.line)

    def findings(self) -> tuple[Finding, ...]:
        """All findings, by severity, then by the number of rows."""
        order = sorted(self._open.items(), key=lambda item: (SEVERITIES.index(item[1].severity), -item[1].count))
        return tuple(_closed(kind, key, finding) for (kind, key), finding in order)


def _closed(kind: str, key: str, finding: _OpenFinding) -> Finding:
    message = finding.message
    if finding.count > 1 and not key:  # rows with a key share one message
        message = f"{finding.count:,} {KINDS[kind].title}; first: {message}"
    return Finding(
        kind=kind,
        severity=finding.severity,
        file=finding.place.file,
        line=finding.place.line,
        row=finding.place.row,
        message=message,
        fix=finding.fix,
        count=finding.count,
        split=finding.split or None,
        examples=tuple(finding.examples),
        lines=tuple(finding.lines),
    )


def excerpt(text: str, limit: int = EXCERPT_LENGTH) -> str:
    """The beginning of a text on one line."""
    one_line = " ".join(text[: 4 * limit].split())
    if len(one_line) <= limit and len(text) <= 4 * limit:
        return one_line
    return f"{one_line[: limit - 1]}…"


def quoted(names: Iterable[str], limit: int = 6) -> str:
    """Names in quotes; those beyond `limit` are counted."""
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(f'"{excerpt(name, 40)}"' for name in every[:limit]) + more
