"""The view of heads as JSON: tokens, maps of weights, and products of pairs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from regard.look.answer import answer_of
from regard.look.heads import check_heads, grid_maps, head_vectors, pair_products, weight_map
from regard.look.reading import AttentionPart, Reading, ShownToken, switched_off
from regard.look.session import LookSession
from regard.look.views.arrays import packed, rounded
from regard.look.views.fields import Fields

GRID_PIXELS = 48


def read(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The tokens of a text, the parts with attention, and the model's answer."""
    number = fields.number("model", 0)
    request = fields.input()
    reading = session.read(number, request)
    return {
        "tokens": [token_values(token) for token in reading.tokens],
        "target": [token_values(token) for token in reading.target],
        "written": reading.written,
        "windows": reading.windows,
        "notices": list(reading.notices),
        "parts": [_part(part) for part in reading.parts],
    }


def answer(session: LookSession, fields: Fields) -> dict[str, Any]:
    """What the model answers."""
    model = session.model(fields.number("model", 0))
    request = fields.input()
    with switched_off(model, request):
        return asdict(answer_of(model, request))


def grid(session: LookSession, fields: Fields) -> dict[str, Any]:
    """A small map of every head of every layer."""
    part = read_fields(session, fields).part(fields.optional_text("part"))
    values = torch.stack(list(grid_maps(part, GRID_PIXELS)))  # (layers, heads, rows, columns)
    largest = values.amax((2, 3), keepdim=True).clamp(min=1e-9)
    return {
        "part": part.name,
        "maps": packed(values / largest, "uint8"),
        "largest": rounded(largest[:, :, 0, 0]),
    }


def map(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The weights of some heads of a layer."""
    part = read_fields(session, fields).part(fields.optional_text("part"))
    heads = check_heads(part, fields.numbers("heads"))
    weights_HTS = weight_map(part, fields.number("layer", 1), heads)
    return {"part": part.name, "heads": heads, "weights": packed(weights_HTS)}


def pair(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The products of a query and a key, dimension by dimension."""
    part = read_fields(session, fields).part(fields.optional_text("part"))
    products = pair_products(
        part, fields.number("layer", 1), fields.number("head", 0), fields.number("query"), fields.number("key")
    )
    return asdict(products)


def vectors(session: LookSession, fields: Fields) -> dict[str, Any]:
    """Queries, keys and scores of one head, from which a page in a file computes the products of any pair."""
    part = read_fields(session, fields).part(fields.optional_text("part"))
    layer = fields.number("layer", 1)
    queries, keys, scores = head_vectors(part, layer, fields.number("head", 0))
    call = part.layers[layer - 1].call
    return {
        "queries": rounded(queries, 4),
        "keys": rounded(keys, 4),
        "scores": None if call.bias_HR is None and call.can_fuse else rounded(scores, 5),
        "scale": call.score.scale,
        "additive": not call.can_fuse and call.select == "soft",
    }


def read_fields(session: LookSession, fields: Fields) -> Reading:
    """The text of a request as the model read it."""
    return session.read(fields.number("model", 0), fields.input())


def token_values(token: ShownToken) -> dict[str, Any]:
    """A token as the page reads it."""
    return {name: value for name, value in asdict(token).items() if value is not None}


def _part(part: AttentionPart) -> dict[str, Any]:
    return {
        "name": part.name,
        "layers": part.depth,
        "heads": part.heads,
        "queries": [token_values(token) for token in part.queries],
        "keys": [token_values(token) for token in part.keys],
        "masks": [{"left": left, "right": right} for left, right in part.masks],
    }
