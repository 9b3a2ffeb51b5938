"""Two models on one text as JSON: how differently their heads attend, and their hidden states."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.errors import InputError
from regard.look.changes import hidden_states
from regard.look.heads import weight_map
from regard.look.reading import AttentionPart, Reading
from regard.look.session import LookSession
from regard.look.views.arrays import packed, rounded
from regard.look.views.fields import Fields

MAX_TOKENS = 512  # of texts whose weights are compared in full


def difference(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Total variation between the weights of the same heads, and cosines of the hidden states."""
    if len(session.models) < 2:
        raise InputError("one model is open; start the page with a second: --compare MODEL.")
    request = fields.input()
    first, second = (session.read(number, request) for number in (0, 1))
    part = fields.optional_text("part")
    one, two = first.part(part), second.part(part)
    _check_same(one, two)
    notices = []
    if one.depth != two.depth:
        notices.append(
            f"The models have {one.depth} and {two.depth} layers; the first {min(one.depth, two.depth)} are compared."
        )
    return {
        "notices": notices,
        "difference": packed(head_differences(one, two)),
        "states": _cosines(session, first, second),
    }


def head_differences(one: AttentionPart, two: AttentionPart) -> Tensor:
    """(layers, heads) half of the absolute differences of two rows of weights, averaged over the rows."""
    rows = []
    for layer in range(1, min(one.depth, two.depth) + 1):
        here, there = weight_map(one, layer), weight_map(two, layer)
        rows.append((here - there).abs().sum(-1).mean(-1) / 2)
    return torch.stack(rows)


def _check_same(one: AttentionPart, two: AttentionPart) -> None:
    names = [[token.token for token in part.queries + part.keys] for part in (one, two)]
    if names[0] != names[1]:
        raise InputError("the two models split this text into different tokens, so their heads cannot be compared.")
    if one.heads != two.heads:
        raise InputError(
            f"the models have {one.heads} and {two.heads} heads in a layer, so their heads do not correspond. Both "
            "maps above can be chosen freely."
        )
    if len(one.queries) > MAX_TOKENS:
        raise InputError(f"this text has {len(one.queries)} tokens; heads are compared up to {MAX_TOKENS}.")


def _cosines(session: LookSession, first: Reading, second: Reading) -> list[float] | None:
    """Mean cosine of the states by layer, the embeddings first; None if they have different widths."""
    try:
        pairs = [hidden_states(session.model(number), reading) for number, reading in enumerate((first, second))]
    except InputError:
        return None
    if pairs[0][0].shape != pairs[1][0].shape:
        return None
    cosines = [torch.cosine_similarity(a, b, dim=-1).mean() for a, b in zip(*pairs, strict=False)]
    values: list[float] = rounded(torch.stack(cosines))
    return values
