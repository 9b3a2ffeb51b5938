"""Attention weights for the eye: exact parts of a map, maps reduced to a number of pixels, and pairs of tokens.

A map is computed in tiles of rows, so that the memory it needs does not grow with the square of the text's length.

Shapes: H heads, T queries, S keys, K head width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.errors import InputError
from regard.look.reading import AttentionPart
from regard.look.recording import HeadInputs
from regard.model.hooks import TILE
from regard.model.kernels.dense import pairwise_bias, sequence_weights

GRID_QUERIES = 512  # rows of a long text that the small maps of the grid are made from


@dataclass(frozen=True, eq=False)
class WeightMap:
    """A part of the weights of some heads; one value stands for `cell` × `cell` weights, of which it is the largest."""

    values_HTS: Tensor
    rows: tuple[int, int]
    columns: tuple[int, int]
    row_cell: int = 1
    column_cell: int = 1


@dataclass(frozen=True)
class PairProducts:
    """How the score of one query with one key comes about."""

    query: tuple[float, ...]
    key: tuple[float, ...]
    products: tuple[float, ...]  # their sum is the dot product
    dot: float
    scale: float
    bias: float
    score: float  # dot * scale + bias
    masked: bool
    weight: float
    additive: bool = False  # the score is a small network on the pair, not a product


def check_layer(part: AttentionPart, layer: int) -> int:
    """The index of a layer that is counted from 1."""
    if not 1 <= layer <= part.depth:
        raise InputError(f"layer {layer} does not exist: the {part.name} has layers 1 to {part.depth}.")
    return layer - 1


def check_heads(part: AttentionPart, heads: Sequence[int] | None) -> list[int]:
    """Heads are counted from 0; all of them if None."""
    if heads is None:
        return list(range(part.heads))
    for head in heads:
        if not 0 <= head < part.heads:
            raise InputError(f"head {head} does not exist: each layer has heads 0 to {part.heads - 1}.")
    return list(heads)


def check_token(what: str, place: int, count: int) -> int:
    """The index of a token."""
    if not 0 <= place < count:
        raise InputError(f"{what} {place} does not exist: there are {count} tokens, counted from 0.")
    return place


@torch.no_grad()
def weight_rows(part: AttentionPart, layer: int, heads: Sequence[int], rows: Sequence[int] | slice) -> Tensor:
    """(H, T, S) the exact weights of some queries."""
    index = check_layer(part, layer)
    if part.alignment_TS is not None:
        return part.alignment_TS[rows].unsqueeze(0)
    inputs = part.layers[index]
    q_HTK, k_HSK, head_H = head_inputs(inputs, heads)
    return sequence_weights(q_HTK, k_HSK, inputs.call, row=0, rows=rows, heads=head_H).float()  # type: ignore[arg-type]  # a list of rows works as a slice does


def head_inputs(inputs: HeadInputs, heads: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(H, T, K) queries and (H, S, K) keys of some heads, and their indices."""
    per_key = inputs.q_NHK.shape[1] // inputs.k_MGK.shape[-2]
    head_H = torch.tensor(list(heads), dtype=torch.int64, device=inputs.q_NHK.device)
    k_HSK = inputs.call.layout.keys_of(inputs.k_MGK, 0)[:, head_H // per_key].transpose(0, 1)
    return inputs.q_NHK[:, head_H].transpose(0, 1), k_HSK, head_H


def weight_map(
    part: AttentionPart,
    layer: int,
    heads: Sequence[int] | None = None,
    *,
    rows: tuple[int, int] | None = None,
    columns: tuple[int, int] | None = None,
    pixels: int | None = None,
) -> WeightMap:
    """The weights of a part of the queries and keys, at most `pixels` values in each direction (exact if None).

    A reduced value is the largest of the weights it stands for: single strong weights stay visible.
    """
    chosen = check_heads(part, heads)
    top, bottom = _span("rows", rows, len(part.queries))
    left, right = _span("columns", columns, len(part.keys))
    row_cell = _cell(bottom - top, pixels)
    column_cell = _cell(right - left, pixels)
    step = max(1, TILE // (len(chosen) * len(part.keys)) // row_cell) * row_cell
    tiles = []
    for start in range(top, bottom, step):
        weights_HTS = weight_rows(part, layer, chosen, slice(start, min(start + step, bottom)))[..., left:right]
        tiles.append(_reduce(weights_HTS, row_cell, column_cell))
    return WeightMap(torch.cat(tiles, 1), (top, bottom), (left, right), row_cell, column_cell)


def _span(what: str, span: tuple[int, int] | None, count: int) -> tuple[int, int]:
    if span is None:
        return 0, count
    start, end = span
    if not 0 <= start < end <= count:
        raise InputError(f"{what} {start} to {end} do not exist: there are {count}, counted from 0.")
    return start, end


def _cell(count: int, pixels: int | None) -> int:
    return 1 if pixels is None else max(1, -(-count // pixels))


def _reduce(weights_HTS: Tensor, rows: int, columns: int) -> Tensor:
    if rows == 1 and columns == 1:
        return weights_HTS
    return F.max_pool2d(weights_HTS, (rows, columns), ceil_mode=True)


def grid_maps(part: AttentionPart, pixels: int = 48) -> Iterator[WeightMap]:
    """One small map of every head of every layer, layer by layer.

    Of a text with more than GRID_QUERIES tokens, evenly spaced queries are shown.
    """
    count = len(part.queries)
    heads = list(range(part.heads))
    if count <= GRID_QUERIES:
        for layer in range(1, part.depth + 1):
            yield weight_map(part, layer, pixels=pixels)
        return
    part.layers[-1]  # all layers in one run of the network
    rows = torch.linspace(0, count - 1, min(pixels * 2, GRID_QUERIES)).long()
    for layer in range(1, part.depth + 1):
        weights_HTS = weight_rows(part, layer, heads, rows.tolist())
        row_cell = _cell(len(rows), pixels)
        column_cell = _cell(len(part.keys), pixels)
        values = _reduce(weights_HTS, row_cell, column_cell)
        yield WeightMap(values, (0, count), (0, len(part.keys)), -(-count // values.shape[1]), column_cell)


@torch.no_grad()
def head_vectors(part: AttentionPart, layer: int, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """(T, K) queries, (S, K) keys and (T, S) scores of one head, before the mask."""
    index = check_layer(part, layer)
    check_heads(part, [head])
    if part.alignment_TS is not None:
        raise InputError("the alignment of a recurrent network has no queries and keys per head to multiply.")
    call = part.layers[index].call
    q_HTK, k_HSK, head_H = head_inputs(part.layers[index], [head])
    scores_TS = call.score.score_pairs(q_HTK, k_HSK, head_H)[0]
    if call.bias_HR is not None:
        query = torch.arange(len(part.queries)).view(1, 1, -1, 1) + len(part.keys) - len(part.queries)
        key = torch.arange(len(part.keys)).view(1, 1, 1, -1)
        scores_TS = scores_TS + pairwise_bias(call.bias_HR.cpu(), query, key)[0, head].to(scores_TS.device)
    return q_HTK[0], k_HSK[0], scores_TS


@torch.no_grad()
def pair_products(part: AttentionPart, layer: int, head: int, query: int, key: int) -> PairProducts:
    """The products of a query and a key by dimension, their sum, the scaled score and the weight."""
    index = check_layer(part, layer)
    check_heads(part, [head])
    check_token("query", query, len(part.queries))
    check_token("key", key, len(part.keys))
    if part.alignment_TS is not None:
        raise InputError("the alignment of a recurrent network has no queries and keys per head to multiply.")
    inputs = part.layers[index]
    call = inputs.call
    q_HTK, k_HSK, head_H = head_inputs(inputs, [head])
    q_K, k_K = q_HTK[0, query].float(), k_HSK[0, key].float()
    products_K = q_K * k_K
    bias = 0.0
    query_place = torch.tensor(query + len(part.keys) - len(part.queries)).view(1, 1, 1, 1)
    key_place = torch.tensor(key).view(1, 1, 1, 1)
    if call.bias_HR is not None:
        bias = float(pairwise_bias(call.bias_HR.cpu(), query_place, key_place)[0, head])
    score = float(call.score.score_pairs(q_HTK[:, query : query + 1], k_HSK[:, key : key + 1], head_H)) + bias
    allowed = call.mask.allowed(torch.tensor(0), torch.tensor(head), query_place, key_place)
    return PairProducts(
        query=tuple(q_K.tolist()),
        key=tuple(k_K.tolist()),
        products=tuple(products_K.tolist()),
        dot=float(products_K.sum()),
        scale=call.score.scale,
        bias=bias,
        score=score,
        masked=not bool(allowed),
        weight=float(weight_rows(part, layer, [head], slice(query, query + 1))[0, 0, key]),
        additive=not call.can_fuse and call.select == "soft",
    )
