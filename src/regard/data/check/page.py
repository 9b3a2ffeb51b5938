"""A report as one page of HTML: nothing is fetched, nothing runs, and everything from the data is escaped."""

from __future__ import annotations

from pathlib import Path

from regard.data.check.finding import CheckReport, Finding
from regard.data.check.plots import bars, histogram, overlap, safe

STYLE = """
:root { color-scheme: light dark; --back: #f6f7f9; --card: #fff; --ink: #1c2330; --faint: #667085; --edge: #e3e6ec;
  --bar: #4f7cc4; --near: #e0a43a; --error: #c0392b; --warning: #b7791f; --note: #667085; --track: #eceff4; }
@media (prefers-color-scheme: dark) { :root { --back: #12151b; --card: #1b2029; --ink: #e6e9ef; --faint: #98a2b3;
  --edge: #2c3340; --bar: #6d9be0; --near: #e0b050; --error: #ef7b6f; --warning: #e3b341; --note: #98a2b3;
  --track: #272e3a; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 4rem; background: var(--back); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: auto; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .9rem; }
p { margin: .2rem 0; }
.faint { color: var(--faint); fill: var(--faint); }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.3rem 0; }
.tile, .card { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; }
.tile { flex: 1 1 120px; padding: .7rem 1rem; }
.tile b { display: block; font-size: 1.5rem; font-weight: 650; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: .8rem;
  margin-bottom: .8rem; }
.card { padding: 1.1rem 1.2rem; margin-bottom: .8rem; }
.plots .card { margin: 0; } .broad { grid-column: 1 / -1; }
svg { display: block; width: 100%; height: auto; font-size: 12.5px; }
svg text { fill: var(--ink); } svg text.faint, svg .faint { fill: var(--faint); } svg .name { text-anchor: end; }
.bar { fill: var(--bar); } .rest { fill: var(--note); } .over { fill: var(--error); } .near { fill: var(--near); }
.track { fill: var(--track); } .grid { stroke: var(--edge); } .limit { stroke: var(--error); stroke-dasharray: 4 3; }
svg text.warn { fill: var(--error); }
.finding { border-top: 1px solid var(--edge); padding: .8rem 0; }
.finding:first-of-type { border-top: 0; padding-top: 0; }
.head { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline; }
.pill { font-size: .75rem; font-weight: 650; border-radius: 99px; padding: .1rem .6rem;
  border: 1px solid currentColor; }
.error { color: var(--error); } .warning { color: var(--warning); } .note { color: var(--note); }
.what { overflow-wrap: anywhere; margin: .3rem 0; }
details { margin-top: .4rem; } summary { cursor: pointer; color: var(--faint); font-size: .87rem; }
table { border-collapse: collapse; width: 100%; margin-top: .5rem; font-size: .87rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-top: 1px solid var(--edge);
  overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; color: var(--faint); }
"""


def html_page(report: CheckReport, *, name: str) -> str:
    """The whole page. `name` is what the data is called."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{safe(name)}: data check</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{safe(name)}</h1>
<p class="faint">{safe(report.format or "not recognised")}</p>
{_tiles(report)}
<div class="plots">
{_plots(report)}
</div>
{_findings(report)}
{_training(report)}
</main>
</body>
</html>
"""


def _tiles(report: CheckReport) -> str:
    tiles = [(f"{report.rows:,}", "rows", "")]
    if report.bad_rows:
        tiles.append((f"{report.bad_rows:,}", "cannot be used", "error"))
    tiles += [
        (
            f"{report.count(grave):,}",
            f"{grave}s" if report.count(grave) != 1 else grave,
            grave if report.count(grave) else "",
        )
        for grave in ("error", "warning", "note")
    ]
    if report.lengths is not None:
        tiles.append((f"{report.lengths.median:,}", "tokens, median", ""))
    inner = "".join(f'<div class="tile"><b class="{style}">{value}</b>{what}</div>' for value, what, style in tiles)
    return f'<div class="tiles">{inner}</div>'


def _plots(report: CheckReport) -> str:
    cards = []
    if report.labels:
        cards.append(_card("Labels", bars(dict(report.labels))))
    if report.numbers:
        said = "from {low:g} to {high:g}, {mean:g} on average".format(**report.numbers)
        cards.append(_card("Labels are numbers", f"<p>{said}</p>"))
    if report.lengths is not None:
        size = report.lengths
        said = f"95 % of the rows have up to {size.p95:,}, the longest {size.max_length:,}"
        if size.limit is not None:
            said += (
                f"; {size.fraction_over_limit:.1%} are longer than the model"
                if size.fraction_over_limit
                else "; none is longer than the model"
            )
        if size.rows != report.rows:
            said += f" ({size.rows:,} rows were counted)"
        cards.append(_card("Length in tokens", histogram(size) + f'<p class="faint">{said}.</p>'))
    if report.overlaps:
        cards.append(_card("What splits share", overlap(report.overlaps), style="card broad"))
    return "\n".join(cards)


def _card(title: str, inner: str, *, style: str = "card") -> str:
    return f'<section class="{style}"><h2>{title}</h2>{inner}</section>'


def _findings(report: CheckReport) -> str:
    if not report.findings:
        return _card("Findings", "<p>Nothing found: the data looks clean.</p>")
    return _card("Findings", "\n".join(map(_finding, report.findings)))


def _finding(found: Finding) -> str:
    rows = f"{found.count:,} row{'s' if found.count != 1 else ''}"
    rest = "".join(
        f"<tr><td>{safe(one.where)}</td><td>{safe(one.message)}</td><td>{safe(one.text)}</td></tr>"
        for one in found.examples
    )
    table = f"<table><tr><th>where</th><th>what</th><th>row</th></tr>{rest}</table>"
    more = f"<details><summary>examples</summary>{table}</details>" if rest else ""
    return f"""<div class="finding">
<div class="head"><span class="pill {found.severity}">{found.severity}</span><strong>{safe(found.kind)}</strong>
<span class="faint">{rows} · {safe(_place(found))}</span></div>
<p class="what">{safe(found.message)}</p>
<p class="faint">→ {safe(found.fix)}</p>
{more}</div>"""


def _place(found: Finding) -> str:
    where = f"line {found.line}" if found.line is not None else "" if found.row is None else f"row {found.row}"
    return " of ".join(part for part in (where, Path(found.file or "").name) if part)


def _training(report: CheckReport) -> str:
    about = report.estimate
    if about is None:
        return ""
    said = (
        f"<p>{safe(about.model)}, {about.parameters / 1e6:,.1f} million parameters, {about.tokens:,} tokens per epoch: "
        f"about {format_duration(about.seconds)} on {safe(about.device)}, {about.memory / 1e9:.1f} GB of memory.</p>"
        f'<p class="faint">An estimate from a short measurement: {safe(about.assumptions)}.</p>'
    )
    return _card("What training will take", said)


def format_duration(seconds: float) -> str:
    """A duration in words."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(seconds, 1):.0f} s"
