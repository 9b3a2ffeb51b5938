"""Why this answer, as JSON: the methods that fit the model, and the explanation of each with its faithfulness."""

from __future__ import annotations

from typing import Any

from regard.look.explain.explain import WEAK, default_method
from regard.look.explain.methods import METHODS
from regard.look.session import LookSession
from regard.look.views.fields import Fields

HIDDEN = ("random",)


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
    explanation = model.explain(
        request.text,
        request.pair,
        method=fields.optional_text("method"),
        target=fields.optional_text("aim"),
        faithfulness=True,
    )
    return explanation.json()
