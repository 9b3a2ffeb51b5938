"""What if, as JSON: words that change the answer."""

from __future__ import annotations

from typing import Any

from regard.look.session import LookSession
from regard.look.views.fields import Fields


def counterfactuals(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Replacements of single words that change the answer; words come from a masked language model if one is open."""
    model = session.model(fields.number("model", 0))
    others = [other for _, other in session.models if other is not model and "masked" in other.network.heads]
    return model.counterfactuals(fields.input().text, masked_model=others[0] if others else None).json()
