"""Value-weighted attention (Kobayashi et al. 2020, 2021): attention weights times the length of what they carry.

A weight on a short vector carries little. In each layer the share of token j in token i is the length of the sum over
heads of weight × value × output projection, with the residual for i = j; the shares of a token add up to 1 and are
multiplied through the layers as in attention rollout.

Shapes: H heads, G key-value heads, K head width, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.look.explain.methods.method import Attribution, Method, MethodOptions, needs_attention, weights_of_target
from regard.look.explain.scorer import Scorer, Variant, VariantBatch
from regard.look.explain.tokenized import InputSequence
from regard.model import hooks as taps
from regard.model.block import Block
from regard.model.network import Network
from regard.model.transformer import Transformer

TILE = 1 << 24  # numbers of the vectors between pairs of tokens that are computed at a time


def why_not(network: Network) -> str | None:
    """For one stack; what crosses from an encoder to a decoder has no residual to be compared with."""
    if needs_attention(network) is None and network.config.kind == "encoder-decoder":
        return "in an encoder-decoder it is not defined across both"
    return needs_attention(network)


@contextmanager
def block_inputs(network: Transformer) -> Iterator[list[Tensor]]:
    """The hidden states that each block reads, in the order in which they run."""
    inputs: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Any, ...]) -> None:
        inputs.append(args[0].detach())

    with ExitStack() as hooks:
        for block in network.main.layers:
            hooks.callback(block.register_forward_pre_hook(keep).remove)
        yield inputs


def shares(weights_HTT: Tensor, values_TGK: Tensor, output_DHK: Tensor, x_TD: Tensor) -> Tensor:
    """(T, T) the share of each token in each token."""
    heads = weights_HTT.shape[0]
    values_THK = values_TGK.repeat_interleave(heads // values_TGK.shape[1], 1)
    carried_HTD = torch.einsum("thk,dhk->htd", values_THK, output_DHK)
    size, width = x_TD.shape
    lengths = []
    step = max(1, TILE // (size * width))
    for start in range(0, size, step):
        rows = slice(start, min(start + step, size))
        pairs_TSD = torch.einsum("hts,hsd->tsd", weights_HTT[:, rows], carried_HTD)
        own = torch.arange(rows.start, rows.stop, device=x_TD.device)
        pairs_TSD[own - start, own] += x_TD[rows]
        lengths.append(pairs_TSD.norm(dim=-1))
    lengths_TT = torch.cat(lengths)
    return lengths_TT / lengths_TT.sum(-1, keepdim=True).clamp(min=1e-12)


@torch.no_grad()
def sequence_shares(network: Transformer, batch: VariantBatch) -> list[Tensor]:
    """(T, T) the shares of each layer."""
    name = "encoder" if network.decoder is None else "decoder"
    stack = network.main
    with block_inputs(network) as inputs, taps.record(network, f"{name}.layers.*.attention.v") as values:
        weights = taps.attention(network, batch.tokens, stack="main")
    layers = []
    for layer, x_TD in enumerate(inputs):
        index = stack.layer_index(layer)
        run = [stack.layer_index(other) for other in range(layer)].count(index)
        values_TGK = values.runs(f"{name}.layers.{index}.attention.v")[run]
        block = stack.layers[index]
        assert isinstance(block, Block)
        output_DHK = block.attention.out.weight.unflatten(1, (weights[layer][0].shape[0], -1))
        layers.append(shares(weights[layer][0].float(), values_TGK.float(), output_DHK.float(), x_TD.float()))
    return layers


def explain(scorer: Scorer, options: MethodOptions) -> Attribution:
    return weights_of_target(scorer, _product)


def _product(scorer: Scorer, sequence: InputSequence) -> Tensor:
    assert isinstance(scorer.network, Transformer)
    variant = Variant(sequence.ids, sequence.segments, sequence.decoder_ids, scorer.target.positions)
    layers = sequence_shares(scorer.network, VariantBatch.of([variant], scorer.device))
    total_TT = torch.eye(len(layers[0]), device=scorer.device)
    for shares_TT in layers:
        total_TT = shares_TT @ total_TT
    return total_TT


METHOD = Method("value_weighted_attention", "value-weighted attention", explain, why_not, signed=False)
