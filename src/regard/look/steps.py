"""The arithmetic of one head for one token, with the numbers of the network: from the embedding to the next layer.

Every number is recomputed from the weights and the recorded inputs; the tests hold it equal to what the network did.

Shapes: D width, K head width, S keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import InputError
from regard.look.heads import check_heads, check_layer, check_token, head_inputs, weight_map
from regard.look.reading import AttentionPart, Reading
from regard.model.attention import Attention
from regard.model.block import Block
from regard.model.embeddings import Embeddings
from regard.model.transformer import Stack, Transformer
from regard.predict.model import Model


@dataclass(frozen=True, eq=False)
class EmbeddingSum:
    """The vectors that are added for a token; `total` is what the first layer reads."""

    token_D: Tensor
    position_D: Tensor | None
    segment_D: Tensor | None
    total_D: Tensor  # after the norm, if there is one
    rows: int  # of the table of tokens
    scale: float
    norm: bool


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """One head at one token. `residual` is the stream that the output is added to."""

    embedding: EmbeddingSum | None
    residual_D: Tensor
    input_D: Tensor  # what queries are made from: the residual stream, normed first in a pre-norm block
    query_K: Tensor  # as the projection gives it
    rotated_K: Tensor | None  # after rotary positions or the transform of another score
    keys_SK: Tensor  # as the score uses them
    values_SK: Tensor
    dots_S: Tensor
    scale: float
    bias_S: Tensor | None
    allowed_S: Tensor
    scores_S: Tensor
    weights_S: Tensor
    mixed_K: Tensor  # the weighted sum of the values
    contribution_D: Tensor  # of this head to the output
    attention_D: Tensor  # of all heads, with the bias
    sum_D: Tensor  # residual + attention
    normed_D: Tensor | None  # the norm of the sum, in a post-norm block
    feedforward_D: Tensor
    layer_D: Tensor  # the hidden state after the layer
    norm_first: bool
    is_product: bool  # the score is a dot product


class _Calls:
    """Inputs and outputs of modules, one entry for each time they ran."""

    def __init__(self) -> None:
        self.runs: dict[nn.Module, list[tuple[tuple[Any, ...], Tensor]]] = {}

    def keep(self, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        self.runs.setdefault(module, []).append((inputs, output.detach()))


@contextmanager
def _recorded(modules: list[nn.Module]) -> Iterator[_Calls]:
    calls = _Calls()
    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_hook(calls.keep).remove)
        yield calls


@torch.no_grad()
def head_steps(model: Model, reading: Reading, part_name: str | None, layer: int, head: int, token: int) -> HeadSteps:
    """Everything that one head computes for one token of a text."""
    part = reading.part(part_name)
    index = check_layer(part, layer)
    check_heads(part, [head])
    check_token("token", token, len(part.queries))
    network = model.network
    if part.alignment_TS is not None or not isinstance(network, Transformer):
        raise InputError(
            "step by step shows the heads of a Transformer. The alignment of a recurrent network is one map: see Heads."
        )
    stack = network.encoder if part.name == "encoder" else network.decoder
    assert stack is not None
    block = stack.layers[stack.layer_index(index)]
    assert isinstance(block, Block)
    attention = block.cross if part.name == "cross" else block.attention
    norm = block.cross_norm if part.name == "cross" else block.attention_norm
    assert attention is not None
    assert norm is not None
    with _recorded([stack.embeddings, attention, norm, block.feedforward, block]) as calls:
        _run(network, reading)
    run = [stack.layer_index(i) for i in range(index)].count(stack.layer_index(index))
    parts = {module: calls.runs[module][run] for module in (attention, norm, block.feedforward, block)}
    embedding = None
    if index == 0 and part.name != "cross":
        embedding = _embedding_sum(stack, reading, part, calls.runs[stack.embeddings][0][1], token)
    (inputs, _), (norm_inputs, normed_ND) = parts[attention], parts[norm]
    residual_ND = norm_inputs[0] if block.norm_first else inputs[0]
    attention_D = parts[attention][1][token]
    return HeadSteps(
        embedding=embedding,
        residual_D=residual_ND[token],
        input_D=inputs[0][token],
        attention_D=attention_D,
        sum_D=residual_ND[token] + attention_D,
        normed_D=None if block.norm_first else normed_ND[token],
        feedforward_D=parts[block.feedforward][1][token],
        layer_D=parts[block][1][token],
        norm_first=block.norm_first,
        **_head(part, attention, inputs, index, head, token),
    )


def _run(network: Transformer, reading: Reading) -> None:
    if reading.target_batch is not None:
        network(reading.batch, reading.target_batch)
    else:
        network.main(reading.batch)


def _head(
    part: AttentionPart, attention: Attention, inputs: tuple[Any, ...], index: int, head: int, token: int
) -> dict[str, Any]:
    """The fields of HeadSteps that belong to the head."""
    x_ND, context = inputs[0], inputs[1]
    width = attention.head_width
    heads, kv_heads, _ = attention.head_counts
    kv_head = head // (heads // kv_heads)
    if attention.cross:
        query_K = attention.query(x_ND[token : token + 1]).view(heads, width)[head]
        values_SK = attention.memory(context.memory_MD).unflatten(1, (-1, width))[:, kv_heads + kv_head]
    else:
        projected = attention.qkv(x_ND).unflatten(1, (-1, width))
        query_K, values_SK = projected[token, head], projected[:, heads + kv_heads + kv_head]
    recorded = part.layers[index]
    q_HTK, k_HSK, head_H = head_inputs(recorded, [head])
    final_K, keys_SK = q_HTK[0, token], k_HSK[0]
    weights_S = weight_map(part, index + 1, [head])[0, token]
    call = recorded.call
    is_product = call.can_fuse or call.select != "soft"
    scores_S = call.score.score_pairs(q_HTK[:, token : token + 1], k_HSK, head_H)[0, 0]
    query, key = _places(part, token, x_ND.device)
    bias_S = None
    if call.bias_HR is not None:
        middle = (call.bias_HR.shape[1] - 1) // 2
        bias_S = call.bias_HR[head][key - query + middle]
        scores_S = scores_S + bias_S
    row = torch.tensor(0, device=x_ND.device)
    allowed_S = call.mask.allowed(row, torch.tensor(head, device=x_ND.device), query, key)
    mixed_K = weights_S.to(values_SK.dtype) @ values_SK
    columns = slice(head * width, (head + 1) * width)
    return {
        "query_K": query_K,
        "rotated_K": None if torch.allclose(query_K, final_K, atol=1e-6) else final_K,
        "keys_SK": keys_SK,
        "values_SK": values_SK,
        "dots_S": keys_SK @ final_K,
        "scale": call.score.scale,
        "bias_S": bias_S,
        "allowed_S": allowed_S,
        "scores_S": scores_S,
        "weights_S": weights_S,
        "mixed_K": mixed_K,
        "contribution_D": attention.out.weight[:, columns] @ mixed_K,
        "is_product": is_product,
    }


def _places(part: AttentionPart, token: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Positions of the query and of all keys, as masks and biases count them."""
    key_S = torch.arange(len(part.keys), device=device)
    return torch.tensor(token + len(part.keys) - len(part.queries), device=device), key_S


def _embedding_sum(stack: Stack, reading: Reading, part: AttentionPart, output_ND: Tensor, token: int) -> EmbeddingSum:
    embeddings: Embeddings = stack.embeddings
    batch = reading.batch
    if part.name == "decoder" and reading.target_batch is not None:
        batch = reading.target_batch
    place = batch.positions[token]
    position_D = None
    if embeddings.places is not None:
        position_D = embeddings.places.weight[place + embeddings.offset]
    elif embeddings.table is not None:
        position_D = embeddings.table[place]
    segment_D = None if embeddings.segments is None else embeddings.segments(batch)[token]
    return EmbeddingSum(
        token_D=embeddings.tokens.weight[batch.ids[token]] * embeddings.scale,
        position_D=position_D,
        segment_D=segment_D,
        total_D=output_ND[token],
        rows=embeddings.tokens.num_embeddings,
        scale=embeddings.scale,
        norm=not isinstance(embeddings.norm, nn.Identity),
    )
