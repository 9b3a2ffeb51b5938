"""Building blocks of report pages: cards, tables, tiles and examples. All text from the data is escaped here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from regard.data.check.plots import escaped
from regard.metrics.confidence import Score
from regard.report.plots import Line, interval_bar
from regard.report.row_facts import RowExample
from regard.report.style import STYLE

MAX_TEXT = 600  # characters of a text that are shown


def html_page(title: str, content: str) -> str:
    """A whole page: its style sheet is inside, and it loads nothing."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/>
<title>{escaped(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""


def card(title: str, content: str, *, note: str = "", name: str = "") -> str:
    """A box with a title; `note` is a sentence below it, `name` its anchor. Nothing without content."""
    if not content:
        return ""
    below = f'<p class="faint small">{escaped(note)}</p>' if note else ""
    anchor = f' id="{name}"' if name else ""
    return f'<section class="card"{anchor}><h2>{escaped(title)}</h2>{below}{content}</section>'


def grid(cards: Sequence[str]) -> str:
    """Boxes side by side on a wide screen."""
    some = [one for one in cards if one]
    return f'<div class="grid">{"".join(some)}</div>' if some else ""


def tile(value: str, name: str, *, main: bool = False) -> str:
    """A number and what it is."""
    style = "tile main" if main else "tile"
    return f'<div class="{style}"><b>{escaped(value)}</b><span class="faint small">{escaped(name)}</span></div>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    styles: Mapping[int, str] | None = None,
) -> str:
    """A table of cells that are HTML already; `numbers` are the columns to align right, `styles` of other columns."""
    if not rows:
        return ""
    by_column = {**dict.fromkeys(numbers, "n"), **(styles or {})}
    cells = [_row("th", head, by_column), *(_row("td", row, by_column) for row in rows)]
    return f'<div class="scroll"><table>{"".join(cells)}</table></div>'


def _row(kind: str, cells: Sequence[str], styles: Mapping[int, str]) -> str:
    classes = [f' class="{styles[index]}"' if index in styles else "" for index in range(len(cells))]
    inner = "".join(f"<{kind}{style}>{cell}</{kind}>" for style, cell in zip(classes, cells, strict=True))
    return f"<tr>{inner}</tr>"


def key_values(values: Mapping[str, object]) -> str:
    """A table of two columns."""
    rows = "".join(
        f'<tr><td class="key">{escaped(name)}</td><td>{escaped(str(value))}</td></tr>'
        for name, value in values.items()
        if value not in (None, "")
    )
    return f'<div class="scroll"><table class="plain">{rows}</table></div>' if rows else ""


def folded(title: str, content: str) -> str:
    """Content that is shown on a click."""
    return f"<details><summary>{escaped(title)}</summary>{content}</details>" if content else ""


def legend(lines: Sequence[Line]) -> str:
    """The names of the lines of a plot."""
    names = "".join(f'<span class="c{line.color}"><i></i>{escaped(line.name)}</span>' for line in lines)
    return f'<div class="legend">{names}</div>'


def score_table(
    head: Sequence[str], rows: Sequence[tuple[Sequence[str], Score]], *, without_bar: Collection[int] = ()
) -> str:
    """Scores with their intervals as bars on one scale. The first cells of a row are texts.

    without_bar: the numbers of rows with another scale, such as errors among correlations.
    """
    if not rows:
        return ""
    on_scale = [score for number, (_, score) in enumerate(rows) if number not in without_bar]
    ends = [end for score in on_scale for end in (score.low, score.high, score.value) if end == end]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    scale = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    if scale == (0.0, 1.0) and low > 0.5:
        scale = (0.5, 1.0)
    lines = [
        [
            *map(escaped, cells),
            f"{score.value:.4f}",
            f"{score.low:.4f} to {score.high:.4f}",
            "" if number in without_bar else _bar(score, scale),
        ]
        for number, (cells, score) in enumerate(rows)
    ]
    width = len(rows[0][0])
    names = [*map(escaped, head), "value", "95 % interval", f"{scale[0]:.4g} to {scale[1]:.4g}"]
    content = table(names, lines, numbers=(width, width + 1), styles={width + 2: "meter wide"})
    return content.replace("<table>", '<table class="scores">')


def _bar(score: Score, scale: tuple[float, float]) -> str:
    values = (score.value, score.low, score.high)
    return interval_bar(*values, scale=scale) if all(value == value for value in values) else ""


def example(one: RowExample) -> str:
    """A row of the data with its answer."""
    right = "label" if one.suggested is not None else "true"
    answer = one.suggested if one.suggested is not None else one.answer
    chance = "" if one.confidence is None else f" {one.confidence:.1%}"
    head = [
        f'<span class="faint">{right}</span> <span class="tag c3">{escaped(shortened(one.target))}</span>',
        f'<span class="faint">predicted</span> <span class="tag c1">{escaped(shortened(answer))}</span>{chance}',
        f'<span class="faint">{escaped(one.place)}</span>' if one.place else "",
    ]
    texts = "".join(_text(name, text, named=len(one.texts) > 1) for name, text in one.texts)
    spans = "".join(f"<span>{part}</span>" for part in head if part)
    return f'<div class="example"><div class="head">{spans}</div>{texts}</div>'


def _text(name: str, text: str, *, named: bool) -> str:
    prefix = f'<span class="faint small">{escaped(name)}</span> ' if named else ""
    return f'<p class="text">{prefix}{escaped(shortened(text))}</p>'


def shortened(text: str, length: int = MAX_TEXT) -> str:
    """The beginning of a long text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def code(text: str) -> str:
    """A block of code."""
    return f"<pre>{escaped(text)}</pre>"
