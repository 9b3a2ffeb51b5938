"""Comparisons of models as tables in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from regard.cli.output import format_bytes, format_rate, shorten
from regard.cli.report import print_columns
from regard.errors import pluralize

if TYPE_CHECKING:
    from regard.comparison.evaluate_models import ModelsEvaluation
    from regard.comparison.result import Comparison, LearningCurve, ModelResult, SliceResult
    from regard.metrics.confidence import Score

NAME = 32  # characters of a model's name


def print_evaluations(result: ModelsEvaluation) -> None:
    """The scores of every model, the verdict on every pair, and scores by slice."""
    scores = {name: evaluation.scores for name, evaluation in result.models.items()}
    _print_scores(scores)
    if result.pairs:
        print()
    for pair in result.pairs:
        print(f"{pair.verdict}.")
        difference = _interval(pair.difference, pair.low, pair.high, sign="+")
        print(f"  difference of {pair.metric}: {difference}, {_tests(pair)}")
    _print_slices(result.slices)
    _print_answered(result)
    for note in result.notes:
        print(f"\n{note}.")
    if not result.pairs and result.verdict:
        print(f"\nThe intervals are not reliable: {result.verdict}.")
    print(f"\n{pluralize(result.rows, 'row')} in {result.seconds:.1f} s, {format_rate(result.rows, result.seconds)}.")


def _tests(pair: object) -> str:
    names = {"p_holm": "p", "p_bootstrap": "bootstrap", "p_randomization": "randomization", "p_mcnemar": "McNemar"}
    values = {name: getattr(pair, field) for field, name in names.items()}
    corrected = values.pop("p")
    parts = ", ".join(f"{name} {_p(value)}" for name, value in values.items() if value is not None)
    return f"p {_p(corrected)} ({parts})"


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def _interval(value: float, low: float, high: float, *, sign: str = "") -> str:
    return f"{value:{sign}.4f} ({low:{sign}.4f} to {high:{sign}.4f})"


def _print_scores(scores: Mapping[str, Mapping[str, Score]]) -> None:
    """One line per model and one column per score."""
    names = list(dict.fromkeys(name for of_model in scores.values() for name in of_model))[:4]
    rows = [["model", *names]]
    for model, of_model in scores.items():
        cells = [of_model.get(name) for name in names]
        texts = ["" if one is None else _interval(one.value, one.low, one.high) for one in cells]
        rows.append([shorten(model, NAME), *texts])
    print_columns(rows)


def _print_slices(slices: Sequence[SliceResult]) -> None:
    if not slices:
        return
    models = list(slices[0].scores)
    print(f"\n{slices[0].metric} by slice")
    heads = [shorten(model, NAME) for model in models]
    rows = [["slice", "rows", *heads, *(["difference"] if len(models) > 1 else [])]]
    for part in slices:
        scores = [_interval(score.value, score.low, score.high) for score in part.scores.values()]
        last = []
        if part.difference is not None:
            last = [_interval(part.difference.value, part.difference.low, part.difference.high, sign="+")]
        rows.append([f"{part.by}: {shorten(part.value, NAME)}", f"{part.rows:,}", *scores, *last])
    print_columns(rows)


def _print_answered(result: ModelsEvaluation) -> None:
    """Which fraction of the rows each model answers if it abstains, and its score there: of all rows, and by slice."""
    abstentions = [one.abstention for one in result.models.values()]
    known = [one for one in abstentions if one is not None]
    if not known:
        return
    print(f"\nanswered with a confidence of at least {known[0].below:g}")
    metric = result.slices[0].metric if result.slices else result.metric
    names = [f"{shorten(name, NAME)}: " if len(known) > 1 else "" for name in result.models]
    rows = [["slice", "rows", *(f"{name}{column}" for name in names for column in ("coverage", metric))]]
    parts = [("all", result.rows, [(one.coverage, one.scores.get(metric)) for one in known])]
    for part in result.slices:
        answered = [(one.coverage, one.score) for one in (part.answered or {}).values()]
        parts.append((f"{part.by}: {shorten(part.value, NAME)}", part.rows, answered))
    for title, count, scores in parts:
        every = [score for both in scores for score in both]
        cells = ["none" if score is None else _interval(score.value, score.low, score.high) for score in every]
        rows.append([title, f"{count:,}", *cells])
    print_columns(rows)


def print_comparison(result: Comparison) -> None:
    """The table of models, the verdicts, the rule of thumb and the learning curves."""
    rows = [["model", result.metric, "train", "one text", "texts/s", "memory", "weights", "parameters"]]
    rows += [_model_row(model, result.metric) for model in result.models]
    print_columns(rows)
    for model in result.models:
        if model.error is not None:
            print(f"{model.name}: {model.error}")
    print()
    for pair in result.pairs:
        print(f"{pair.verdict}.")
    print(f"\n{result.verdict}")
    if result.rule_of_thumb is not None:
        print(result.rule_of_thumb.sentence)
    for curve in result.curves:
        _print_curve(curve)
    for note in result.notes:
        print(f"Note: {note}.")
    counts = {"test": result.rows, "training": result.train_rows, "validation": result.dev_rows}
    size = ", ".join(pluralize(count, f"{name} row") for name, count in counts.items())
    print(f"\ndata: {result.data}\n{size}, {result.seconds:.0f} s.")


def _model_row(model: ModelResult, metric: str) -> list[str]:
    name = f"{shorten(model.name, NAME)} ({model.kind})"
    if model.error is not None:
        return [name, "failed", *[""] * 6]
    score = model.scores[metric]
    return [
        name,
        _interval(score.value, score.low, score.high),
        "" if model.kind == "loaded" else _duration(model.train_seconds),
        f"{model.latency_ms:.3g} ms",
        f"{model.texts_per_second:,.0f}",
        "" if model.memory_bytes is None else format_bytes(model.memory_bytes),
        format_bytes(model.bytes),
        f"{model.parameters:,}",
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _print_curve(curve: LearningCurve) -> None:
    print(f"\nlearning curve of {curve.name}")
    lines = [*zip(curve.rows, curve.scores, [""] * len(curve.rows), strict=True)]
    lines += [(rows, score, "expected") for rows, score in curve.predicted.items()]
    rows = [["rows", "score", ""]]
    rows += [[f"{count:,}", _interval(score.value, score.low, score.high), note] for count, score, note in lines]
    print_columns(rows)
    print(f"{curve.sentence}.")
