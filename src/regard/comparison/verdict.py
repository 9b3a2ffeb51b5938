"""The summary of a comparison: the best model, the cheapest one that is as good, and the rule of thumb."""

from __future__ import annotations

from collections.abc import Sequence

from regard.comparison.result import ModelResult, PairResult, RuleOfThumb
from regard.comparison.trainings.specs import BASELINE
from regard.comparison.words import is_close, listing, number, points

RULE_LIMIT = 1500


def ranked(models: Sequence[ModelResult], metric: str, *, higher: bool) -> list[ModelResult]:
    """The best model first; those without a result last."""
    sign = -1 if higher else 1
    scored = [model for model in models if model.error is None]
    failed = [model for model in models if model.error is not None]
    return [*sorted(scored, key=lambda model: sign * model.scores[metric].value), *failed]


def cheapest_close(models: Sequence[ModelResult], metric: str) -> ModelResult:
    """The fastest of the ranked models that are within 1 point of the first."""
    best = models[0].scores[metric].value
    close = [model for model in models if model.error is None and is_close(metric, model.scores[metric].value, best)]
    return min(close, key=lambda model: (model.latency_ms, model.bytes))


def summary(models: Sequence[ModelResult], pairs: Sequence[PairResult], metric: str, reason: str | None) -> str:
    """What the comparison says, in two sentences. `models` are ranked."""
    best = models[0]
    equal: list[str] = []
    score = f"{best.name} has the best {metric.replace('_', ' ')} ({number(metric, best.scores[metric].value)})"
    if reason is not None and len(models) > 1:
        score = f"No verdict: {reason}. {score} here"
    else:
        equal = [other for pair in pairs if (other := _other(pair, best.name)) and pair.better is None]
        if equal:
            score += f", but cannot be told apart from {listing(equal)}"
    if len(models) == 1:
        return f"{score.replace(' has the best ', ' has ')}."
    cheapest = cheapest_close(models, metric)
    close = "within 1 point" if points(metric, 0.0).endswith("points") else "within 1 %"
    costs = f"Cheapest model {close} of the best: {_with_latency(cheapest)}."
    as_good = min([best, *(one for one in models if one.name in equal)], key=lambda model: model.latency_ms)
    if as_good.latency_ms < cheapest.latency_ms:
        costs += f" Cheapest of those that cannot be told apart from the best: {_with_latency(as_good)}."
    return f"{score}. {costs}"


def _with_latency(model: ModelResult) -> str:
    return f"{model.name} ({model.latency_ms:.3g} ms for one text)"


def _other(pair: PairResult, name: str) -> str | None:
    names = (pair.a, pair.b)
    return None if name not in names else names[1 - names.index(name)]


def rule_of_thumb(
    samples: int, words: float, models: Sequence[ModelResult], pairs: Sequence[PairResult]
) -> RuleOfThumb | None:
    """Samples / words per sample against 1,500, beside what was measured for n-grams and the best network."""
    if not words:
        return None
    ratio = samples / words
    expects = "n-grams" if ratio < RULE_LIMIT else "a sequence model"
    sign = "below" if ratio < RULE_LIMIT else "at or above"
    rule = (
        f"Rule of thumb: {samples:,} samples / {words:g} words per sample = {ratio:,.0f}, {sign} {RULE_LIMIT:,}: "
        f"{expects} expected to be best"
    )
    return RuleOfThumb(samples, words, round(ratio, 1), expects, f"{rule}; {_measured(expects, models, pairs)}.")


def _measured(expects: str, models: Sequence[ModelResult], pairs: Sequence[PairResult]) -> str:
    ngram = next((model for model in models if model.error is None and model.name == "ngram"), None)
    network = next((model for model in models if model.error is None and model.kind != BASELINE), None)
    if ngram is None or network is None:
        return "not checked, since that takes ngram and a network in the comparison"
    pair = next(pair for pair in pairs if {pair.a, pair.b} == {ngram.name, network.name})
    if pair.better is None:
        return f"measured: {pair.verdict}"
    right = (pair.better == ngram.name) == (expects == "n-grams")
    return f"measured: {pair.verdict}, so the rule is {'right' if right else 'wrong'} here"
