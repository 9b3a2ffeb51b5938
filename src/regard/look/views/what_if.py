"""What if, as JSON: words that change the answer, and a copy of the model without chosen heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.errors import InputError
from regard.look.session import LookSession
from regard.look.views.fields import Fields


def counterfactuals(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Replacements of single words that change the answer; words come from a masked language model if one is open."""
    model = session.model(fields.number("model", 0))
    others = [other for _, other in session.models if other is not model and "masked" in other.network.heads]
    return model.counterfactuals(fields.input().text, masked_model=others[0] if others else None).json()


def save(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Write a copy of the model without the heads that are switched off; the folder must not exist."""
    if not session.may_write:
        raise InputError("this page is open to other machines, so it does not write files.")
    request = fields.input()
    if not request.off:
        raise InputError("no head is switched off. Choose heads in the table first.")
    folder = Path(fields.text("folder").strip()).expanduser()
    if not folder.name:
        raise InputError("give the name of a new folder, such as runs/pruned.")
    model = session.model(fields.number("model", 0))
    pruned = model.without_heads(list(request.off), **request.off_stack)
    written = pruned.save(folder)
    return {"folder": str(written), "heads": len(request.off)}
