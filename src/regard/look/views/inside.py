"""Lens and meaning in context as JSON."""

from __future__ import annotations

from typing import Any

from regard.look.reading import switched_off
from regard.look.session import LookSession
from regard.look.views.fields import Fields

MAX_SENTENCES = 40


def lens(session: LookSession, fields: Fields) -> dict[str, Any]:
    """What each layer would predict."""
    model = session.model(fields.number("model", 0))
    request = fields.input()
    with switched_off(model, request):
        return model.lens(request.text, request.pair).json()


def meaning(session: LookSession, fields: Fields) -> dict[str, Any]:
    """One word in several sentences."""
    model = session.model(fields.number("model", 0))
    sentences = [line for line in fields.text("sentences").splitlines() if line.strip()][:MAX_SENTENCES]
    return model.meaning(fields.text("word").strip(), sentences).json()
