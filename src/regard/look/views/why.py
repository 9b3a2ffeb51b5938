"""Why this answer, as JSON: the methods that fit the model, and the explanation of each with its faithfulness."""

from __future__ import annotations

from typing import Any

from regard.look.explain.exclusive import exclusive
from regard.look.explain.explain import WEAK, default_method, make_scorer
from regard.look.explain.explain import explain as explain_text
from regard.look.explain.methods import METHODS
from regard.look.explain.order_scores import order_scores
from regard.look.explain.order_search import CachedScorer, searched_orders
from regard.look.session import LookSession
from regard.look.views.fields import Fields

HIDDEN = ("random",)
MAX_SEARCHED = 48  # words of a text whose best and worst order the page searches


def methods(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Every method with its title, and why it does not fit the model, if so."""
    model = session.model(fields.number("model", 0))
    listed = [
        {"name": name, "title": method.title, "signed": method.signed, "why_not": method.why_not(model.network)}
        for name, method in METHODS.items()
        if name not in HIDDEN
    ]
    return {"methods": listed, "default": default_method(model), "warning": WEAK}


def explain(session: LookSession, fields: Fields) -> dict[str, Any]:
    """One text explained by one method; `aim` is what is explained, the model's own answer if it is not named."""
    model = session.model(fields.number("model", 0))
    request = fields.input()
    explanation = explain_text(
        model,
        request.text,
        request.pair,
        method=fields.optional_text("method"),
        target=fields.optional_text("aim"),
        faithfulness=True,
        limits=False,
    )
    return explanation.json()


def limits(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The comprehensiveness of the best and of the worst order of words that a search finds; of short texts."""
    model = session.model(fields.number("model", 0))
    request = fields.input()
    with exclusive(model.network):
        scorer = make_scorer(model, request.text, request.pair, fields.optional_text("aim"))
        words = len(scorer.text.erasable_words)
        if not 1 < words <= MAX_SEARCHED:
            return {"limits": None, "words": words, "max_words": MAX_SEARCHED}
        cached = CachedScorer.wrap(scorer)
        scores = order_scores(cached, searched_orders(cached))
    values = [one.comprehensiveness for one in scores]
    return {"limits": [min(values), max(values)], "words": words, "max_words": MAX_SEARCHED}
