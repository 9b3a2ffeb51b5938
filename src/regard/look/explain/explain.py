"""Explain an answer of a model: a score for every word of the text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.config import BagConfig
from regard.errors import InputError, setting
from regard.look.explain.baseline_text import BaselineScorer
from regard.look.explain.exclusive import exclusive
from regard.look.explain.explanation import Explanation, WordScore
from regard.look.explain.methods import METHODS, find_method
from regard.look.explain.methods.method import Attribution, Method, MethodOptions
from regard.look.explain.order_search import text_faithfulness
from regard.look.explain.scorer import Scorer
from regard.look.explain.targets.resolve import resolve_target
from regard.progress import OnProgress

if TYPE_CHECKING:
    from regard.predict.model import Model

DEFAULT_METHOD = "decomposition"
FALLBACK_METHOD = "occlusion"  # for networks that the default does not fit
WEAK = "Attention weights alone are not an explanation: they show where a layer reads, not what mattered."


def explain(
    model: Model,
    text: str,
    pair: str | None = None,
    *,
    method: str | None = None,
    target: str | None = None,
    steps: int | None = None,
    faithfulness: bool = False,
    limits: bool = True,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Explanation:
    """How much each word of a text contributed to an answer of the model; see `Model.explain`."""
    options = MethodOptions(_checked(steps), seed, progress)
    chosen = find_method(default_method(model) if method is None else method, model.network)
    with exclusive(model.network):
        scorer = make_scorer(model, text, pair, target)
        explanation = explain_scorer(scorer, chosen, options)
        if faithfulness:
            words = np.array([word.score for word in explanation.words])
            measured = text_faithfulness(scorer, words, options, limits=limits)
            explanation = replace(explanation, faithfulness=measured)
    return explanation


def default_method(model: Model) -> str:
    """The most faithful method (benchmarks/explain.py) that fits the network."""
    fits = METHODS[DEFAULT_METHOD].why_not(model.network) is None
    return DEFAULT_METHOD if fits else FALLBACK_METHOD


def make_scorer(model: Model, text: str, pair: str | None = None, target: str | None = None) -> Scorer:
    """A text and a target of its answer, ready for any method."""
    if isinstance(model.config, BagConfig):
        return BaselineScorer.for_text(model, text, pair, target)
    tokenized, chosen = resolve_target(model, text, pair, target)
    return Scorer.of(model.network, model.require_tokenizer(), tokenized, chosen)


def explain_scorer(scorer: Scorer, method: Method, options: MethodOptions) -> Explanation:
    """The explanation of one text by one method."""
    text = scorer.text
    attribution = method.explain(scorer, options)
    values_1C = scorer.erased_values(scorer.nothing_erased)
    chances = scorer.target.probability(values_1C)
    value = float(scorer.target.score(values_1C))
    notes = [note for note in (WEAK if method.name == "attention" else None, text.note) if note is not None]
    return Explanation(
        method=method.name,
        target=scorer.target.info,
        text=text.texts[0],
        pair=text.texts[1] if len(text.texts) > 1 else None,
        tokens=text.tokens,
        offsets=text.offsets,
        sequence_ids=text.sequence_ids,
        token_scores=tuple(attribution.tokens_T.tolist()),
        words=_words(scorer, attribution),
        value=value,
        probability=None if chances is None else float(chances),
        baseline_value=attribution.baseline,
        bias=attribution.bias,
        delta=_delta(value, attribution),
        signed=method.signed,
        erased_by=scorer.erased_by,
        windows=len(text.sequences),
        note=" ".join(notes) or None,
    )


def word_scores(scorer: Scorer, attribution: Attribution) -> list[float]:
    """A score for each word: its own where the method has one, else the sum of its tokens' scores."""
    if attribution.words_W is not None:
        scores: list[float] = attribution.words_W.tolist()
        return scores
    return [float(attribution.tokens_T[list(word.tokens)].sum()) for word in scorer.text.words]


def _words(scorer: Scorer, attribution: Attribution) -> tuple[WordScore, ...]:
    texts = scorer.text.texts
    return tuple(
        WordScore(texts[word.sequence][word.start : word.end], word.sequence, word.start, word.end, score, word.tokens)
        for word, score in zip(scorer.text.words, word_scores(scorer, attribution), strict=True)
    )


def _delta(value: float, attribution: Attribution) -> float | None:
    """What the scores do not account for."""
    if attribution.baseline is None:
        return None
    return value - attribution.baseline - (attribution.bias or 0.0) - float(attribution.tokens_T.sum())


def _checked(steps: int | None) -> int | None:
    if steps is not None and not 1 <= steps <= 4096:
        raise InputError(f"{setting('steps')} is {steps}, expected 1 to 4096.")
    return steps
