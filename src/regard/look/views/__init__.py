"""The views of the page as JSON: one function for each request that the page makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regard.look.session import LookSession
from regard.look.views import attention, compare, data_set, inside, steps, what_if, why
from regard.look.views.fields import Fields

VIEWS: dict[str, Callable[[LookSession, Fields], dict[str, Any]]] = {
    "read": attention.read,
    "answer": attention.answer,
    "grid": attention.grid,
    "map": attention.map,
    "pair": attention.pair,
    "vectors": attention.vectors,
    "steps": steps.steps,
    "positions": steps.positions,
    "change": steps.change,
    "difference": compare.difference,
    "methods": why.methods,
    "explain": why.explain,
    "limits": why.limits,
    "lens": inside.lens,
    "meaning": inside.meaning,
    "counterfactuals": what_if.counterfactuals,
    "job": data_set.job,
}
