"""Pictures of a comparison: score against latency, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.comparison.result import Comparison, LearningCurve, ModelResult
from regard.data.atomic import atomic_path

BEST, OTHER, PALE, DARK = "#3b6ea8", "#8a8a8a", "#999999", "#333333"
COLORS = ("#3b6ea8", "#c44e3b", "#4d8a57", "#8a5d9e", "#c08a2b", "#4a9aa8")
NAME = 28  # characters of a model's name
PLACES = (  # of a name: how it is aligned, and the distance to its point
    ("left", (8, -12)),  # the line between the best models rises to the right
    ("right", (-8, 5)),
    ("left", (8, 5)),
    ("right", (-8, -12)),
)


def draw_pareto(comparison: Comparison, path: Path) -> None:
    """Score against the latency of one text. Models that no other beats in both are blue and connected."""
    from matplotlib.figure import Figure

    models = [model for model in comparison.models if model.error is None]
    if not models:
        return
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axis = figure.add_subplot()
    front = pareto_front(models, comparison.metric, higher=comparison.higher_is_better)
    line = sorted((model.latency_ms, model.scores[comparison.metric].value) for model in front)
    axis.plot(*zip(*line, strict=True), color=BEST, linewidth=1, alpha=0.6, zorder=1)
    names = [_draw_model(axis, model, comparison.metric, color=BEST if model in front else OTHER) for model in models]
    axis.set_xscale("log")
    axis.set(xlabel="time of one text in ms", ylabel=comparison.metric.replace("_", " "))
    title = (
        f"{comparison.task}, {comparison.rows:,} test rows, 95 % intervals; blue: no other model is faster and better"
    )
    axis.set_title(title, loc="left", fontsize=10)
    axis.margins(x=0.25, y=0.15)
    if not comparison.higher_is_better:
        axis.invert_yaxis()
    _plain(axis)
    place_names(axis, names)
    with atomic_path(path) as part:
        figure.savefig(part, dpi=150, format="png")


def pareto_front(models: Sequence[ModelResult], metric: str, *, higher: bool = True) -> list[ModelResult]:
    """Models for which no other one is both at least as fast and at least as good."""
    sign = 1 if higher else -1

    def beaten(model: ModelResult) -> bool:
        own = sign * model.scores[metric].value
        return any(
            other.latency_ms <= model.latency_ms
            and sign * other.scores[metric].value >= own
            and (other.latency_ms, sign * other.scores[metric].value) != (model.latency_ms, own)
            for other in models
        )

    return [model for model in models if not beaten(model)]


def _draw_model(axis: Any, model: ModelResult, metric: str, *, color: str) -> Any:
    """Draw the point of a model; returns its name, to be placed."""
    from matplotlib.patheffects import withStroke

    score = model.scores[metric]
    errors = [[score.value - score.low], [score.high - score.value]]
    axis.errorbar(model.latency_ms, score.value, yerr=errors, fmt="o", color=color, capsize=3, linewidth=1, zorder=2)
    text = model.name if len(model.name) <= NAME else f"{model.name[: NAME - 1]}…"
    name = axis.annotate(
        text,
        (model.latency_ms, score.value),
        textcoords="offset points",
        xytext=PLACES[0][1],
        color=DARK,
        fontsize=9,
        annotation_clip=False,
        path_effects=[withStroke(linewidth=3, foreground="white")],  # readable where it crosses a line
    )
    name.set_in_layout(False)  # else the axes become narrower, instead of the name another place
    return name


def place_names(axis: Any, names: Sequence[Any]) -> None:
    """Place each name beside its point, inside of the axes, where it covers no other name or point."""
    axis.figure.draw_without_rendering()
    inside = axis.get_window_extent()
    points = [axis.transData.transform(name.xy) for name in names]
    taken: list[Any] = []
    for name in names:
        fits, free = [], []
        for alignment, offset in PLACES:
            name.set(horizontalalignment=alignment, position=offset)
            box = name.get_window_extent()
            if box.x0 < inside.x0 or box.x1 > inside.x1:
                continue
            fits.append((alignment, offset, box))
            if not box.count_overlaps(taken) and not any(box.contains(*point) for point in points):
                free.append(fits[-1])
        alignment, offset, box = (free or fits or [(*PLACES[0], inside)])[0]
        name.set(horizontalalignment=alignment, position=offset)
        taken += [box] if fits else []


def draw_curves(comparison: Comparison, path: Path) -> None:
    """Score against the number of training rows, with the fitted curve's expectation for more rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axis = figure.add_subplot()
    for number, curve in enumerate(comparison.curves):
        _draw_curve(axis, curve, COLORS[number % len(COLORS)])
    axis.set_xscale("log")
    axis.set(xlabel="training rows", ylabel=comparison.metric.replace("_", " "))
    axis.set_title("learning curves; dashed: expected with more rows, 95 % intervals", loc="left", fontsize=10)
    axis.legend(frameon=False)
    _plain(axis)
    with atomic_path(path) as part:
        figure.savefig(part, dpi=150, format="png")


def _draw_curve(axis: Any, curve: LearningCurve, color: str) -> None:
    values = [score.value for score in curve.scores]
    errors = [
        [score.value - score.low for score in curve.scores],
        [score.high - score.value for score in curve.scores],
    ]
    axis.errorbar(curve.rows, values, yerr=errors, fmt="o-", color=color, capsize=3, linewidth=1.2, label=curve.name)
    rows = [curve.rows[-1], *curve.predicted]
    more = [curve.scores[-1], *curve.predicted.values()]
    axis.plot(rows, [score.value for score in more], "--", color=color, linewidth=1.2)
    axis.fill_between(
        rows, [score.low for score in more], [score.high for score in more], color=color, alpha=0.12, linewidth=0
    )


def _plain(axis: Any) -> None:
    """Few lines, and plain numbers on the logarithmic axis."""
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.xaxis.set_minor_formatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in "25" else "")
    axis.tick_params(axis="x", which="minor", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
