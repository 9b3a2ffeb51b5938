"""A check report as one HTML page: no requests, no scripts, and all text from the data is escaped."""

from __future__ import annotations

from pathlib import Path

from regard.data.check.finding import SEVERITIES, CheckReport, Finding, LengthStatistics
from regard.data.check.plots import bars, escaped, histogram, overlap_bars
from regard.errors import pluralize

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
.message { overflow-wrap: anywhere; margin: .3rem 0; }
.fix { color: var(--faint); } .fix b { font-weight: 600; }
details { margin-top: .4rem; } summary { cursor: pointer; color: var(--faint); font-size: .87rem; }
table { border-collapse: collapse; width: 100%; margin-top: .5rem; font-size: .87rem; }
td, th { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-top: 1px solid var(--edge);
  overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; color: var(--faint); }
"""


def html_page(report: CheckReport, *, name: str) -> str:
    """The page of a report. `name` is the title: the name of the data."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escaped(name)}: data check</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Data check: {escaped(name)}</h1>
<p class="faint">{escaped(report.format or "format not recognized")}</p>
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
    """The most important numbers, in boxes."""
    tiles = [_tile(f"{report.rows:,}", "rows")]
    if report.bad_rows:
        tiles.append(_tile(f"{report.bad_rows:,}", "unusable rows", style="error"))
    for severity in SEVERITIES:
        count = report.count(severity)
        name = severity if count == 1 else f"{severity}s"
        tiles.append(_tile(f"{count:,}", name, style=severity if count else ""))
    if report.lengths is not None:
        tiles.append(_tile(f"{report.lengths.median:,}", "median tokens"))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _tile(value: str, name: str, *, style: str = "") -> str:
    return f'<div class="tile"><b class="{style}">{value}</b>{name}</div>'


def _plots(report: CheckReport) -> str:
    cards = []
    if report.labels:
        cards.append(_card("Rows per label", bars(dict(report.labels))))
    if report.numbers:
        values = "{min:g} to {max:g}, mean {mean:g}".format(**report.numbers)
        cards.append(_card("Numeric labels", f"<p>{values}</p>"))
    if report.lengths is not None:
        summary = f'<p class="faint">{describe_lengths(report.lengths, rows=report.rows)}</p>'
        cards.append(_card("Tokens per row", histogram(report.lengths) + summary))
    if report.overlaps:
        cards.append(_card("Rows in two splits", overlap_bars(report.overlaps), style="card broad"))
    return "\n".join(cards)


def describe_lengths(lengths: LengthStatistics, *, rows: int) -> str:
    """Length statistics in sentences. `rows` is the number of all rows, of which a sample may have been counted."""
    text = f"95 % of the rows have at most {lengths.p95:,} tokens; the longest has {lengths.max_length:,}."
    if lengths.limit is not None and lengths.fraction_over_limit:
        text += (
            f" {lengths.fraction_over_limit:.1%} exceed the model's limit of {lengths.limit:,} "
            "and are split into windows."
        )
    elif lengths.limit is not None:
        text += f" None exceeds the model's limit of {lengths.limit:,}."
    if lengths.rows != rows:
        text += f" Measured on {pluralize(lengths.rows, 'row')}."
    return text


def _card(title: str, content: str, *, style: str = "card") -> str:
    return f'<section class="{style}"><h2>{title}</h2>{content}</section>'


def _findings(report: CheckReport) -> str:
    if not report.findings:
        return _card("Findings", "<p>No problems found.</p>")
    return _card("Findings", "\n".join(map(_finding, report.findings)))


def _finding(finding: Finding) -> str:
    examples = "".join(
        f"<tr><td>{escaped(example.where)}</td><td>{escaped(example.message)}</td><td>{escaped(example.text)}</td></tr>"
        for example in finding.examples
    )
    table = f"<table><tr><th>place</th><th>problem</th><th>text</th></tr>{examples}</table>"
    details = f"<details><summary>Examples</summary>{table}</details>" if examples else ""
    return f"""<div class="finding">
<div class="head"><span class="pill {finding.severity}">{finding.severity}</span>
<strong>{escaped(finding.kind)}</strong>
<span class="faint">{pluralize(finding.count, "row")} · {escaped(_place(finding))}</span></div>
<p class="message">{escaped(finding.message)}</p>
<p class="fix"><b>Fix:</b> {escaped(finding.fix)}</p>
{details}</div>"""


def _place(finding: Finding) -> str:
    """Line or row and file of the first row."""
    if finding.line is not None:
        position = f"line {finding.line}"
    elif finding.row is not None:
        position = f"row {finding.row}"
    else:
        position = ""
    return " of ".join(part for part in (position, Path(finding.file or "").name) if part)


def _training(report: CheckReport) -> str:
    estimate = report.estimate
    if estimate is None:
        return ""
    content = (
        f"<p>{escaped(estimate.model)} ({estimate.parameters / 1e6:,.1f} million parameters), "
        f"{estimate.tokens:,} tokens per epoch: "
        f"about {format_duration(estimate.seconds)} on {escaped(estimate.device)}, "
        f"{estimate.memory / 1e9:.1f} GB of memory.</p>"
        f'<p class="faint">Estimated from a short measurement: {escaped(estimate.assumptions)}.</p>'
    )
    return _card("Estimated training time", content)


def format_duration(seconds: float) -> str:
    """A duration with its unit: "40 s", "12 min", "3 hours"."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{max(seconds, 1):.0f} s"
