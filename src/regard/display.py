"""Results as small HTML tables, as notebooks show them (`_repr_html_`). All text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

CELL = "text-align:left;padding:2px 12px 2px 0"
NUMBER = "text-align:right;padding:2px 12px 2px 0;font-variant-numeric:tabular-nums"


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers are aligned right."""
    lines = [_line("th", head)] if head else []
    lines += [_line("td", row) for row in rows]
    return f"<table>{''.join(lines)}</table>"


def html_summary(title: str, values: Mapping[str, object]) -> str:
    """A title with a table of names and values; what is None is left out."""
    rows = [(name.replace("_", " "), value) for name, value in values.items() if value is not None]
    return f"<div><strong>{escape(title)}</strong>{html_table((), rows)}</div>"


def _line(kind: str, cells: Sequence[object]) -> str:
    parts = [f'<{kind} style="{_style(cell)}">{escape(_shown(cell))}</{kind}>' for cell in cells]
    return f"<tr>{''.join(parts)}</tr>"


def _style(cell: object) -> str:
    return NUMBER if isinstance(cell, int | float) and not isinstance(cell, bool) else CELL


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.4g}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, tuple | list):
        return ", ".join(map(_shown, cell))
    if isinstance(cell, Mapping):
        return ", ".join(f"{name} {_shown(value)}" for name, value in cell.items())
    return str(cell)
