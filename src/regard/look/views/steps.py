"""Step by step as JSON: one head at one token, positions, and what a change of the text changes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.look.answer import answer_of
from regard.look.changes import hidden_change
from regard.look.session import LookSession
from regard.look.steps import EmbeddingSum, head_steps
from regard.look.views.arrays import packed, rounded
from regard.look.views.attention import read_fields, token_values
from regard.look.views.fields import Fields
from regard.model.transformer import Transformer
from regard.predict.model import Model

MAX_KEYS = 48  # tokens whose keys and values are shown
HANDS = 8  # pairs of dimensions whose rotation is drawn
DISTANCES = 64


def steps(session: LookSession, fields: Fields) -> dict[str, Any]:
    """The arithmetic of one head at one token."""
    number = fields.number("model", 0)
    reading = read_fields(session, fields)
    token = fields.number("token", 0)
    values = head_steps(
        session.model(number),
        reading,
        fields.optional_text("part"),
        fields.number("layer", 1),
        fields.number("head", 0),
        token,
    )
    shown = _strongest(values.weights_S)
    arrays = {
        name.rsplit("_", 1)[0]: rounded(value)
        for name, value in vars(values).items()
        if isinstance(value, Tensor) and name.endswith(("_D", "_K"))
    }
    by_key = {
        "keys": shown,
        "key_vectors": rounded(values.keys_SK[shown], 4),
        "value_vectors": rounded(values.values_SK[shown], 4),
        "dots": rounded(values.dots_S[shown]),
        "scores": rounded(values.scores_S[shown]),
        "bias": None if values.bias_S is None else rounded(values.bias_S[shown]),
        "allowed": values.allowed_S[shown].tolist(),
        "weights": rounded(values.weights_S[shown]),
    }
    return {
        **arrays,
        **by_key,
        "embedding": None if values.embedding is None else _embedding(values.embedding),
        "rotated": None if values.rotated_K is None else rounded(values.rotated_K),
        "scale": values.scale,
        "norm_first": values.norm_first,
        "is_product": values.is_product,
        "token": token,
        "all_keys": len(values.weights_S),
    }


def _strongest(weights_S: Tensor) -> list[int]:
    """The places of the keys that are shown: all, or those with the largest weights, in the order of the text."""
    if len(weights_S) <= MAX_KEYS:
        return list(range(len(weights_S)))
    places: list[int] = weights_S.topk(MAX_KEYS).indices.sort().values.tolist()
    return places


def _embedding(values: EmbeddingSum) -> dict[str, Any]:
    return {
        "token": rounded(values.token_D),
        "position": None if values.position_D is None else rounded(values.position_D),
        "segment": None if values.segment_D is None else rounded(values.segment_D),
        "total": rounded(values.total_D),
        "rows": values.rows,
        "scale": values.scale,
        "norm": values.norm,
    }


def positions(session: LookSession, fields: Fields) -> dict[str, Any]:
    """How positions enter: frequencies of rotating hands, or the bias of each distance by head."""
    model = session.model(fields.number("model", 0))
    config = model.config
    kind = config.positions.kind if isinstance(config, ModelConfig) else "none"
    return {"kind": kind, "width": config.width, "hands": _hands(model, kind), "bias": _bias(model)}


def _hands(model: Model, kind: str) -> list[dict[str, float]]:
    """Some pairs of dimensions, from the fastest to the slowest, with the angle that one position turns them by."""
    network = model.network
    width = model.config.width
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if kind == "rotary" and isinstance(network, Transformer) and network.main.rotary is not None:
        rates = network.main.rotary.frequency_K.double().cpu()
    chosen = torch.linspace(0, (len(rates) - 1) * 0.72, HANDS).long().unique()
    return [{"pair": int(place), "rate": float(rates[place])} for place in chosen]


def _bias(model: Model) -> list[list[float]] | None:
    network = model.network
    if not isinstance(network, Transformer) or network.reader.bias is None:
        return None
    with torch.no_grad():
        values: list[list[float]] = rounded(network.reader.bias(DISTANCES), 4)
    return values


def change(session: LookSession, fields: Fields) -> dict[str, Any]:
    """What replacing the text by another changes: states by layer and token, and the answer."""
    model = session.model(fields.number("model", 0))
    before = fields.input()
    after = replace(before, text=fields.text("changed"))
    moved = hidden_change(model, before, after)
    return {
        "before": [token_values(token) for token in moved.before],
        "after": [token_values(token) for token in moved.after],
        "pairs": [list(pair) for pair in moved.pairs],
        "change": packed(moved.change_LT),
        "answers": [asdict(answer_of(model, request)) for request in (before, after)],
    }
