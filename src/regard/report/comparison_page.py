"""A comparison of models as one page: verdict, scores, costs, and the test of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from regard.data.check.page import format_duration
from regard.data.check.plots import escaped
from regard.errors import pluralize
from regard.metrics.confidence import Score
from regard.report.elements import card, grid, html_page, key_values, legend, score_table, table, tile
from regard.report.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RADIUS,
    RIGHT,
    TOP,
    WIDTH,
    Line,
    LogScale,
    Scale,
    axes,
    label_places,
    line_plot,
    log_ticks,
    svg,
)

BOTTOM_EDGE = HEIGHT - BOTTOM


class ComparedModels(Protocol):
    """The fields of a comparison that its page shows (`regard.comparison.result.Comparison`)."""

    @property
    def task(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def train_rows(self) -> int: ...
    @property
    def models(self) -> Sequence[Any]: ...
    @property
    def pairs(self) -> Sequence[Any]: ...
    @property
    def verdict(self) -> str: ...
    @property
    def best(self) -> str | None: ...
    @property
    def cheapest(self) -> str | None: ...
    @property
    def rule_of_thumb(self) -> Any: ...
    @property
    def curves(self) -> Sequence[Any]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def seeds(self) -> int: ...
    @property
    def seconds(self) -> float: ...


def comparison_page(comparison: ComparedModels, *, name: str = "Comparison") -> str:
    """The page of a comparison; `name` is its title."""
    done = [model for model in comparison.models if model.scores]
    metric = comparison.metric.replace("_", " ")
    head = f"<h1>{escaped(name)}</h1><p class='faint'>{escaped(comparison.task)}, compared by {escaped(metric)}</p>"
    sections = [
        head,
        _tiles(comparison, len(done)),
        card("Verdict", f"<p>{escaped(comparison.verdict)}</p>{_rule(comparison)}", name="verdict"),
        card("Scores", _scores(comparison, done), note=f"On {comparison.rows:,} test rows.", name="scores"),
        grid([_pareto(comparison, done), _curves(comparison)]),
        card("Costs", _costs(comparison), name="costs"),
        card("Every pair", _pairs(comparison), note="p is corrected for the number of pairs (Holm).", name="pairs"),
        card("Notes", "".join(f"<p>{escaped(note[:1].upper() + note[1:])}.</p>" for note in comparison.notes)),
    ]
    return html_page(name, "\n".join(part for part in sections if part))


def _tiles(comparison: ComparedModels, count: int) -> str:
    tiles = [
        tile(comparison.best or "–", "best score", main=True),
        tile(comparison.cheapest or "–", "fastest within 1 point of the best"),
        tile(f"{count}", f"{'model' if count == 1 else 'models'}, {pluralize(comparison.seeds, 'seed')} of each"),
        tile(f"{comparison.train_rows:,}", "training rows"),
        tile(f"{comparison.rows:,}", "test rows"),
        tile(format_duration(comparison.seconds), "for the comparison"),
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _rule(comparison: ComparedModels) -> str:
    rule = comparison.rule_of_thumb
    return "" if rule is None else f'<p class="faint small">{escaped(rule.sentence)}</p>'


def _scores(comparison: ComparedModels, done: Sequence[Any]) -> str:
    rows: list[tuple[tuple[str, ...], Score]] = [
        ((model.name, model.kind), model.scores[comparison.metric])
        for model in done
        if comparison.metric in model.scores
    ]
    failed = {model.name: model.error for model in comparison.models if not model.scores}
    return score_table(["model", "kind"], rows) + key_values(failed)


def _costs(comparison: ComparedModels) -> str:
    head = ["model", "training", "one text", "texts/s", "memory", "weights", "parameters"]
    rows = [
        [
            escaped(model.name),
            format_duration(model.train_seconds) if model.train_seconds else "–",
            f"{model.latency_ms:.3g} ms",
            f"{model.texts_per_second:,.0f}",
            "–" if model.memory_bytes is None else f"{model.memory_bytes / 1e6:,.0f} MB",
            f"{model.bytes / 1e6:,.1f} MB",
            f"{model.parameters:,}",
        ]
        for model in comparison.models
        if model.scores
    ]
    return table(head, rows, numbers=range(1, 7))


def _pairs(comparison: ComparedModels) -> str:
    rows = [
        [
            escaped(f"{pair.verdict}."),
            f"{pair.difference:+.4f}",
            f"{pair.low:+.4f} to {pair.high:+.4f}",
            f"{pair.p_holm:.3g}",
        ]
        for pair in comparison.pairs
    ]
    return table(["verdict", "difference", "95 % interval", "p"], rows, numbers=(1, 2, 3))


def _pareto(comparison: ComparedModels, done: Sequence[Any]) -> str:
    """Score over the time of one text, on a logarithmic scale."""
    timed = [model for model in done if model.latency_ms]
    if len(timed) < 2:
        return ""
    values = [model.scores[comparison.metric].value for model in timed]
    latencies = [model.latency_ms for model in timed]
    pad = (max(values) - min(values)) * 0.15 or 0.01
    x = LogScale(min(latencies) / 2, max(latencies) * 2, LEFT, WIDTH - RIGHT)
    y = Scale(min(values) - pad, max(values) + pad, BOTTOM_EDGE, TOP)
    marks = log_ticks(x.low, x.high)
    parts = axes(x, y, x_name="milliseconds for one text", x_ticks=marks, x_label=lambda mark: f"{mark:.3g}")
    points = [(x(latency), y(value)) for latency, value in zip(latencies, values, strict=True)]
    names = [model.name for model in timed]
    for (at, height), name, label in zip(points, names, label_places(points, names), strict=True):
        parts.append(f'<circle class="dot c0" cx="{at:.1f}" cy="{height:.1f}" r="{RADIUS}"/>')
        place = f'text-anchor="{label.anchor}" x="{label.x:.1f}" y="{label.y:.1f}"'
        parts.append(f'<text class="strong" {place}>{escaped(name)}</text>')
    return card("Score and speed", svg(parts, "Score over the time of one text"), note="Up and to the left is better.")


def _curves(comparison: ComparedModels) -> str:
    """Scores over training rows; dashed with their interval, what is expected with more rows."""
    measured, expected = [], []
    for index, curve in enumerate(comparison.curves):
        points = [(rows, score.value) for rows, score in zip(curve.rows, curve.scores, strict=True)]
        measured.append(Line(curve.name, points, index % 4, dots=True))
        more = [(curve.rows[-1], curve.scores[-1]), *curve.predicted.items()]
        if curve.predicted:
            band = [(rows, score.low, score.high) for rows, score in more]
            points = [(rows, score.value) for rows, score in more]
            expected.append(Line(f"{curve.name}, expected", points, index % 4, dots=True, dashed=True, band=band))
    if not measured:
        return ""
    sentences = "".join(f'<p class="faint small">{escaped(curve.sentence)}.</p>' for curve in comparison.curves)
    plot = line_plot([*expected, *measured], x_name="training rows", label="Score over training rows", log=True)
    note = "Dashed: expected with more rows, with its 95 % interval." if expected else ""
    return card("Learning curves", plot + legend(measured) + sentences, note=note)
