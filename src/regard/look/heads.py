"""Attention weights for the eye: maps of heads, small maps of all heads, and pairs of tokens.

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
from regard.model.kernels.dense import pairwise_bias, sequence_weights


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
def weight_map(part: AttentionPart, layer: int, heads: Sequence[int] | None = None) -> Tensor:
    """(H, T, S) the weights of some heads of a layer; all of them if None."""
    index = check_layer(part, layer)
    chosen = check_heads(part, heads)
    if part.alignment_TS is not None:
        return part.alignment_TS.unsqueeze(0)
    inputs = part.layers[index]
    q_HTK, k_HSK, head_H = head_inputs(inputs, chosen)
    return sequence_weights(q_HTK, k_HSK, inputs.call, row=0, rows=slice(None), heads=head_H).float()


def grid_maps(part: AttentionPart, pixels: int) -> Iterator[Tensor]:
    """One small map of every head of every layer, layer by layer: at most `pixels` values in each direction.

    A value is the largest of the weights it stands for, so that single strong weights stay visible.
    """
    cell = max(1, -(-len(part.queries) // pixels)), max(1, -(-len(part.keys) // pixels))
    for layer in range(1, part.depth + 1):
        yield F.max_pool2d(weight_map(part, layer), cell, ceil_mode=True)


def head_inputs(inputs: HeadInputs, heads: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(H, T, K) queries and (H, S, K) keys of some heads, and their indices."""
    per_key = inputs.q_NHK.shape[1] // inputs.k_MGK.shape[-2]
    head_H = torch.tensor(list(heads), dtype=torch.int64, device=inputs.q_NHK.device)
    k_HSK = inputs.call.layout.keys_of(inputs.k_MGK, 0)[:, head_H // per_key].transpose(0, 1)
    return inputs.q_NHK[:, head_H].transpose(0, 1), k_HSK, head_H


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
        weight=float(weight_map(part, layer, [head])[0, query, key]),
        additive=not call.can_fuse and call.select == "soft",
    )
