"""The view of heads as JSON: tokens, maps of weights, and products of pairs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from regard.errors import InputError
from regard.look.answer import answer_of
from regard.look.heads import check_heads, grid_maps, head_vectors, pair_products, weight_map
from regard.look.reading import AttentionPart, Reading, ShownToken, switched_off
from regard.look.session import LookSession
from regard.look.views.arrays import packed, rounded
from regard.look.views.fields import Fields

GRID_PIXELS = 48
MAX_EXACT = 1024  # tokens of a map whose weights are sent as they are
MAP_PIXELS = 512


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
    maps = list(grid_maps(part, GRID_PIXELS))
    values = torch.stack([each.values_HTS for each in maps])  # (layers, heads, rows, columns)
    largest = values.amax((2, 3), keepdim=True).clamp(min=1e-9)
    sampled = values.shape[2] * maps[0].row_cell < len(part.queries) or len(part.queries) > 512
    notices = ["Of this long text, the small maps show evenly spaced queries."] if sampled else []
    return {
        "part": part.name,
        "maps": packed(values / largest, "uint8"),
        "largest": rounded(largest[:, :, 0, 0]),
        "notices": notices,
    }


def map(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The weights of some heads of a layer: exact, or reduced to a number of pixels."""
    part = read_fields(session, fields).part(fields.optional_text("part"))
    heads = check_heads(part, fields.numbers("heads"))
    pixels = fields.number("pixels", MAP_PIXELS)
    if not 8 <= pixels <= 2048:
        raise InputError(f'"pixels" is {pixels}, expected 8 to 2048.')
    rows, columns = fields.span("rows"), fields.span("columns")
    size = max(
        len(part.queries) if rows is None else rows[1] - rows[0],
        len(part.keys) if columns is None else columns[1] - columns[0],
    )
    shown = weight_map(
        part,
        fields.number("layer", 1),
        heads,
        rows=rows,
        columns=columns,
        pixels=None if size <= MAX_EXACT else pixels,
    )
    return {
        "part": part.name,
        "heads": heads,
        "weights": packed(shown.values_HTS),
        "rows": list(shown.rows),
        "columns": list(shown.columns),
        "row_cell": shown.row_cell,
        "column_cell": shown.column_cell,
    }


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
